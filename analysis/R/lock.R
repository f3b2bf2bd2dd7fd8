# E[C_lock](n): waiting for and handing over locks. Inside an allocator that counts it (tlfl's instrumented variant), measured;
# for closed allocators a residual, named so; and against both the models of contention.R.

# What an instrumented allocator tells of a pass, over all threads (metrics.csv).
LOCK_METRICS <- c("lock_takes", "lock_contended", "lock_wait_ns", "lock_hold_ns")

#' Locks by an allocator's own account, per operation.
#' @param rows ok rows of churn; metrics of read_results
#' @return rows of fit.csv: C_lock (waiting, ns), lock_hold (ns), lock_takes and lock_contended (1/op); NULL where none counts
fit_lock <- function(rows, metrics) {
  value <- lapply(stats::setNames(LOCK_METRICS, LOCK_METRICS), function(name) metric_of(rows, metrics, name) / rows$ops)
  told <- is.finite(value$lock_takes)
  if (!any(told)) return(NULL)
  terms <- c(lock_takes = "lock_takes", lock_contended = "lock_contended", lock_wait_ns = "C_lock", lock_hold_ns = "lock_hold")
  rows <- rows[told, , drop = FALSE]
  value <- lapply(value, `[`, told)
  do.call(rbind, lapply(names(terms), function(name) {
    rows$value_per_op <- value[[name]]
    by <- group_intervals(rows, c("allocator", "threads"), "value_per_op")
    do.call(rbind, lapply(seq_len(nrow(by)), function(i) {
      fit_row(by[i, ], by$allocator[i], terms[[name]], "counted by the allocator", by$threads[i],
              unit = if (endsWith(name, "_ns")) "ns" else "1/op", source = source_text(rows))
    }))
  }))
}

CONTENTION_CSV <- c("world", "kernel", "allocator", "model", "label", "parameters", "rms", "worst", "worst_n", "last",
                    "form", "chosen", "launches", "reason")

# Below, no model with a parameter for contention can be judged by a thread count left out.
CONTENTION_COUNTS <- 3

#' Which model of contention predicts an allocator's thread counts best, each left out in turn.
#' @param rows launches with threads and `time` (what is left after alpha where that is known)
#' @param models of contention_models
#' @return data.frame of CONTENTION_CSV; launches are those of the thread count that has fewest; form: which lock's hand-over
contention_table <- function(rows, time, world, kernel, models = CONTENTION_MODELS) {
  do.call(rbind, lapply(unique(rows$allocator), function(a) {
    own <- rows$allocator == a
    counts <- length(unique(rows$threads[own]))
    if (counts < CONTENTION_COUNTS) {
      line <- as.data.frame(stats::setNames(rep(list(NA), length(CONTENTION_CSV)), CONTENTION_CSV))
      line[c("world", "kernel", "allocator", "reason")] <-
        list(world, kernel, a, paste("not identifiable here:", plural(counts, "thread count"), "with a CPU for every thread"))
      return(line)
    }
    judged <- choose_contention(data.frame(threads = rows$threads[own], ns_per_op = time[own]), models)
    judged$launches <- min(table(rows$threads[own]))
    cbind(data.frame(world = world, kernel = kernel, allocator = a),
          judged[setdiff(CONTENTION_CSV, c("world", "kernel", "allocator"))])
  }))
}

#' Fit the best of some models of contention to launches.
#' @param threads,time of launches
#' @return as fit_contention, or NULL where none can be fitted
best_contention <- function(threads, time, models = CONTENTION_MODELS) {
  rows <- data.frame(threads = threads, ns_per_op = time)
  judged <- choose_contention(rows, models)
  if (!any(judged$chosen)) {
    # Too few thread counts to judge by one left out: the simplest model that can show contention at all.
    judged$chosen <- judged$model == (if (length(unique(threads)) > 1) "queue" else "none")
  }
  fit <- fit_contention(contention_medians(rows), judged$model[judged$chosen], models = models)
  if (all(is.finite(fit$parameters))) fit else NULL
}
