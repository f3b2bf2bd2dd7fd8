# Rows of the fit: one line a term, with its interval and launches or the reason why it has no number.

FIT_COLUMNS <- c("allocator", "term", "variant", "n", "size", "value", "unit", "low", "high", "launches",
                 "method", "source_sweep", "reason")

#' One block of fit rows.
#' @param interval from median_interval and its kin
#' @param ... columns of FIT_COLUMNS
fit_row <- function(interval, allocator = "", term, variant = "", n = NA, size = NA, unit = "ns", source = "",
                    reason = "") {
  if (is.null(interval)) interval <- median_interval(numeric())
  if (is.na(interval$value) && reason == "") reason <- "no ok rows"
  if (!is.na(interval$value) && is.na(interval$low)) {
    reason <- paste0("no interval: ", plural(interval$launches, "launch", "launches"), ", fewer than ", least_of(interval))
  }
  data.frame(allocator = allocator, term = term, variant = variant, n = n, size = size, value = interval$value,
             unit = unit, low = interval$low, high = interval$high, launches = interval$launches,
             method = interval$method, source_sweep = source, reason = reason)
}

#' A term that the data cannot give: no number, a reason.
no_number <- function(term, reason, ...) fit_row(NULL, term = term, reason = reason, ...)

#' Rows that may enter a fit: more threads than CPUs measure descheduling.
fit_rows <- function(rows) {
  rows <- ok_rows(rows)
  rows[rows$oversubscribed %in% 0 & rows$threads <= rows$cpus & is.finite(rows$ns_per_op), , drop = FALSE]
}

# ---- system time ---------------------------------------------------------------------------------------

os_unknown <- function() {
  paste("not identifiable here: passes under", OS_RESOLVED_NS / 1e6,
        "ms are too short for the tick that splits CPU time; system time stays inside the other terms")
}

#' TRUE where the system time of every row is known.
os_resolved <- function(rows) nrow(rows) > 0 && all(is.finite(rows$sys_ns_per_op))

#' Time an operation, without its system time if that is to be split off.
own_time <- function(rows, split) if (split) rows$ns_per_op - rows$sys_ns_per_op else rows$ns_per_op
