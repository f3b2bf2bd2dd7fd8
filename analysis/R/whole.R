# The whole workload (churn) on this machine's CPUs, term by term.

# Threads do not start at one moment: in a shorter pass of the null kernel the skew is most of what is measured.
MIN_NULL_PASS_NS <- 1e6
NULL_UNKNOWN <- paste("not identifiable here: the null kernel was not measured at these thread counts, or in passes under",
                      MIN_NULL_PASS_NS / 1e6, "ms")

#' The null kernel's rows that belong to a set of churn rows: the same folder where it has them.
null_rows <- function(runs, folder) {
  rows <- fit_rows(rows_of(runs, "null", c(folder, "latency", "contention", "paper")))
  rows[rows$wall_ns >= MIN_NULL_PASS_NS, , drop = FALSE]
}

#' The measuring loop's cost at n threads, over every allocator's launches (null calls none of them).
fit_loop <- function(runs, folder) {
  rows <- null_rows(runs, folder)
  if (nrow(rows) == 0) {
    return(no_number("harness_loop", paste("not measured here: no ok rows of the null kernel with passes of",
                                           MIN_NULL_PASS_NS / 1e6, "ms or more")))
  }
  do.call(rbind, lapply(sort(unique(rows$threads)), function(n) {
    own <- rows[rows$threads == n, , drop = FALSE]
    fit_row(launch_interval(own, own$ns_per_op), term = "harness_loop", n = n, source = source_text(rows))
  }))
}

#' The churn rows that the whole is checked against, one slice with threads varying.
whole_rows <- function(runs) {
  rows <- rows_of(runs, "churn", c("contention", "paper"))
  pick_slice(rows)
}

#' The model's terms of the whole, by allocator and n.
#' @return list(folder, fit = rows of fit.csv, model = data.frame allocator, n, loop, metadata, gap, single, residual, os,
#'   predicted, measured, low, high, launches, error): ns of thread time per operation; single is what one thread
#'   takes without system time, scaled
fit_whole <- function(runs) {
  rows <- whole_rows(runs)
  usable <- fit_rows(rows)
  if (nrow(usable) == 0) {
    reason <- "not measured here: no ok churn rows at n <= cpus"
    return(list(folder = NA, fit = rbind(no_number("T_os", reason), no_number("joint_residual", reason)), model = NULL))
  }
  folder <- usable$folder[1]
  null <- null_rows(runs, folder)
  loop <- function(n) null[null$threads == n, , drop = FALSE]
  fast <- metadata_rows(runs)
  fast <- fast[fast$variant %in% METADATA_VARIANT, , drop = FALSE]
  parts <- lapply(unique(usable$allocator), function(allocator) {
    own <- usable[usable$allocator == allocator, , drop = FALSE]
    whole_of_allocator(own, loop, fast[fast$allocator == allocator, , drop = FALSE], source_text(usable),
                       os_resolved(usable), os_resolved(fast))
  })
  list(folder = folder, fit = do.call(rbind, lapply(parts, `[[`, "fit")),
       model = do.call(rbind, lapply(parts, `[[`, "model")))
}

#' One allocator's terms. Arguments as in fit_whole; `loop` gives the null kernel's launches at n threads; `split` and
#' `split_fast` say whether system time is told apart, for all allocators of the slice alike.
whole_of_allocator <- function(own, loop, fast, source, split, split_fast) {
  name <- own$allocator[1]
  by_size <- vapply(split(fast, fast$size_min), function(g) stats::median(own_time(g, split_fast)), 0)
  metadata <- mean_over_sizes(as.numeric(names(by_size)), as.numeric(by_size), own$size_min[1], own$size_max[1],
                              own$size_dist[1])
  one <- own[own$threads == 1, , drop = FALSE]
  loop_median <- function(n) median_or(loop(n)$ns_per_op, NA_real_)
  loop_one <- loop_median(1)
  fit <- model <- NULL
  for (n in sort(unique(own$threads))) {
    at <- own[own$threads == n, , drop = FALSE]
    scale <- if (n == 1) 1 else loop_median(n) / loop_one
    base <- if (nrow(one) > 0) stats::median(own_time(one, split)) else NA_real_
    os <- launch_interval(at, if (split) at$sys_ns_per_op else rep(NA_real_, nrow(at)))
    whole <- launch_interval(at, at$ns_per_op)
    gap <- base - metadata
    residual <- residual_interval(at, one, n, loop, split)
    predicted <- metadata * scale + if (split) os$value else 0
    fit <- rbind(
      fit,
      fit_row(whole, name, "T_alloc", n = n, source = source),
      fit_row(os, name, "T_os", n = n, source = source, reason = if (split) "" else os_unknown()),
      fit_row(launch_interval(at, at$faults_per_op), name, "faults", n = n, unit = "1/op", source = source),
      if (n == 1) gap_row(name, one, own_time(one, split), metadata, source),
      if (n > 1) fit_row(residual$interval, name, "joint_residual", n = n, source = source, reason = residual$reason)
    )
    model <- rbind(model, data.frame(
      allocator = name, n = n, loop = loop_one * scale,
      metadata = (metadata - if (is.na(loop_one)) 0 else loop_one) * scale, os = os$value,
      gap = gap * scale, single = base * scale, residual = if (n == 1) 0 else residual$interval$value, predicted = predicted,
      measured = whole$value, low = whole$low, high = whole$high, launches = whole$launches,
      error = predicted / whole$value - 1,
      reason = paste(c(if (is.na(metadata)) "not identifiable here: no fastpath rows that cover churn's sizes",
                       if (is.na(scale)) NULL_UNKNOWN,
                       if (n > 1 && nrow(one) == 0) "not identifiable here: no single-thread rows",
                       if (!split) os_unknown()), collapse = "; ")
    ))
  }
  list(fit = fit, model = model)
}

#' C_lock + alpha * P_L3 together: growth of non-system time from 1 to n threads beyond the core's own slow-down.
residual_interval <- function(at, one, n, loop, split) {
  if (n == 1) return(list(interval = median_interval(numeric()), reason = ""))
  if (nrow(one) == 0) {
    return(list(interval = median_interval(numeric()), reason = "not identifiable here: no single-thread rows"))
  }
  if (nrow(loop(1)) == 0 || nrow(loop(n)) == 0) {
    return(list(interval = median_interval(numeric()), reason = NULL_UNKNOWN))
  }
  group <- function(rows, x) list(rows = rows, x = x)
  groups <- list(group(at, own_time(at, split)), group(one, own_time(one, split)), group(loop(n), loop(n)$ns_per_op),
                 group(loop(1), loop(1)$ns_per_op))
  list(interval = launch_combined(groups, function(g) g[[1]] - g[[2]] * g[[3]] / g[[4]]), reason = "")
}

#' single_thread_gap of one allocator, from its single-thread launches and their times.
gap_row <- function(name, one, times, metadata, source) {
  if (is.na(metadata)) {
    return(no_number("single_thread_gap", "not identifiable here: no fastpath rows that cover churn's sizes",
                     allocator = name, n = 1, source = source))
  }
  fit_row(launch_interval(one, times - metadata), name, "single_thread_gap", n = 1, source = source)
}
