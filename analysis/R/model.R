# A first fit of  T_alloc(S, n) = T_metadata(S) + E[C_lock](n) + alpha(n) * P_L3,  T_os beside it.
#
# Every term comes from its own kernel; nothing is regressed jointly, since over n alone the terms are collinear.
#   T_metadata(S)       fastpath, one thread, warm heap (300 live blocks of the class), by size and variant, without
#                       its system time, which is T_os(S), where the passes are long enough to know it
#   harness_loop(n)     null: the measuring loop's own cost; shown, and never counted twice in a sum
#   scale(n)            harness_loop(n) / harness_loop(1): frequency and SMT on the same cores
#   P_L3                c2c, by state and distance
#   T_os(n)             system time per operation of the application-like kernel (churn)
#   single_thread_gap   what churn costs on one thread beyond loop + metadata + system: its mix of sizes and its
#                       working set in the caches, which fastpath does not have
#   joint_residual(n)   growth of churn from 1 to n threads beyond scale(n) and system time: C_lock + alpha * P_L3
#                       together. Without counters the two cannot be told apart.
# Rows with more threads than CPUs measure descheduling and enter nothing here.

FIT_COLUMNS <- c("allocator", "term", "variant", "n", "size", "value", "unit", "low", "high", "launches",
                 "method", "source_sweep", "reason")
METADATA_HEAP <- "warm"
METADATA_VARIANT <- "pair"

# Threads do not start at one moment: in a shorter pass of the null kernel the skew is most of what is measured.
MIN_NULL_PASS_NS <- 1e6
os_unknown <- function() {
  paste("not identifiable here: passes under", OS_RESOLVED_NS / 1e6,
        "ms are too short for the tick that splits CPU time; system time stays inside the other terms")
}
NULL_UNKNOWN <- paste("not identifiable here: the null kernel was not measured at these thread counts, or in passes under",
                      MIN_NULL_PASS_NS / 1e6, "ms")

#' TRUE where the system time of every row is known.
os_resolved <- function(rows) nrow(rows) > 0 && all(is.finite(rows$sys_ns_per_op))

#' Time an operation, without its system time if that is to be split off.
own_time <- function(rows, split) if (split) rows$ns_per_op - rows$sys_ns_per_op else rows$ns_per_op

#' One block of fit rows.
#' @param interval from median_interval and its kin
#' @param ... columns of FIT_COLUMNS
fit_row <- function(interval, allocator = "", term, variant = "", n = NA, size = NA, unit = "ns", source = "",
                    reason = "") {
  if (is.null(interval)) interval <- median_interval(numeric())
  if (is.na(interval$value) && reason == "") reason <- "no ok rows"
  if (!is.na(interval$value) && is.na(interval$low)) {
    reason <- paste0("no interval: ", plural(interval$launches, "launch", "launches"), ", fewer than ", MIN_LAUNCHES)
  }
  data.frame(allocator = allocator, term = term, variant = variant, n = n, size = size, value = interval$value,
             unit = unit, low = interval$low, high = interval$high, launches = interval$launches,
             method = interval$method, source_sweep = source, reason = reason)
}

#' A term that the data cannot give: no number, a reason.
no_number <- function(term, reason, ...) fit_row(NULL, term = term, reason = reason, ...)

#' Rows that may enter a fit.
fit_rows <- function(rows) {
  rows <- ok_rows(rows)
  rows[rows$oversubscribed %in% 0 & rows$threads <= rows$cpus & is.finite(rows$ns_per_op), , drop = FALSE]
}

#' The fastpath rows behind T_metadata.
metadata_rows <- function(runs) {
  rows <- fit_rows(rows_of(runs, "fastpath", "fastpath"))
  rows <- rows[rows$threads == 1 & rows$size_min == rows$size_max, , drop = FALSE]
  dependent <- grepl("form=dependent", rows$params, fixed = TRUE)
  if (!all(dependent)) rows <- rows[!dependent, , drop = FALSE]
  state <- if (any(rows$heap_state %in% METADATA_HEAP)) METADATA_HEAP else NA
  rows <- rows[is.na(state) | rows$heap_state %in% state, , drop = FALSE]
  pick_slice(rows, c("variant", "size_min", "size_max", "work"))
}

#' T_metadata by allocator, variant and size, gross of the loop.
fit_metadata <- function(runs) {
  rows <- metadata_rows(runs)
  if (nrow(rows) == 0) return(no_number("T_metadata", "not measured here: no ok single-thread fastpath rows"))
  rows$variant[is.na(rows$variant)] <- ""
  groups <- split(rows, list(rows$size_min, rows$variant, rows$allocator), drop = TRUE, lex.order = FALSE)
  one <- function(g, x, term) {
    fit_row(median_interval(x), g$allocator[1], term, g$variant[1], 1, g$size_min[1], source = source_text(g))
  }
  split <- os_resolved(rows) # for all or for none: to split off only where it is large would favour the slow
  do.call(rbind, lapply(unname(groups), function(g) {
    faults <- one(g, g$faults_per_op, "faults")
    faults$unit <- "1/op"
    rbind(one(g, own_time(g, split), "T_metadata"), if (split) one(g, g$sys_ns_per_op, "T_os"),
          if (is.finite(faults$value)) faults)
  }))
}

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
    fit_row(median_interval(rows$ns_per_op[rows$threads == n]), term = "harness_loop", n = n,
            source = source_text(rows))
  }))
}

#' P_L3 by state and distance class. A dependent load or a hand-over of one line: an upper estimate of what a
#' buffered store pays.
fit_penalty <- function(results) {
  matrix <- results$matrix
  rows <- ok_rows(results$runs)
  matrix <- matrix[matrix$key %in% rows$key & is.finite(matrix$ns), , drop = FALSE]
  if (is.null(matrix) || nrow(matrix) == 0) {
    return(no_number("P_L3", "not measured here: no ok rows of the c2c kernel"))
  }
  matrix$distance <- distance_text(matrix$distance)
  groups <- split(matrix, list(matrix$state, matrix$distance), drop = TRUE)
  do.call(rbind, lapply(unname(groups), function(g) {
    per_launch <- tapply(g$ns, g$key, stats::median)
    fit_row(median_interval(as.numeric(per_launch)), term = "P_L3",
            variant = paste(g$state[1], g$distance[1], sep = ", "),
            source = source_text(rows[rows$folder %in% sub("/[^/]*$", "", g$key[1]), , drop = FALSE]))
  }))
}

#' Latency of a dependent load by working set (chase, one thread): where the caches end.
fit_chase <- function(runs) {
  rows <- fit_rows(rows_of(runs, "chase", "latency"))
  rows <- rows[rows$threads == 1 & grepl("set=[0-9]+", rows$params), , drop = FALSE]
  if (nrow(rows) == 0) return(no_number("chase", "not measured here: no ok single-thread rows of the chase kernel"))
  rows$set <- as.numeric(sub(".*set=([0-9]+).*", "\\1", rows$params))
  rows$pages <- ifelse(grepl("pages=", rows$params), sub(".*pages=([a-z]+).*", "\\1 pages", rows$params), "working set")
  groups <- split(rows, list(rows$set, rows$pages), drop = TRUE)
  do.call(rbind, lapply(unname(groups), function(g) {
    fit_row(median_interval(g$ns_per_op), term = "chase", variant = g$pages[1], n = 1, size = g$set[1], source = source_text(g))
  }))
}

#' The distance class of a pair of CPUs as c2c records it, in words.
distance_text <- function(class) {
  words <- c(smt = "same core", l3 = "same L3", package = "same socket", remote = "other socket")
  text <- unname(words[class])
  ifelse(is.na(text), "distance not recorded", text)
}

#' The churn rows that the whole is checked against, one slice with threads varying.
whole_rows <- function(runs) {
  rows <- rows_of(runs, "churn", c("contention", "paper"))
  pick_slice(rows)
}

#' Mean of T_metadata over a size distribution, by linear interpolation in log2(size).
#' @param sizes,cost measured points (bytes, ns), at least two sizes
#' @param size_min,size_max,size_dist the distribution of the whole
#' @return ns; NA where the range is not covered or the distribution is not known here
mean_over_sizes <- function(sizes, cost, size_min, size_max, size_dist) {
  if (length(sizes) < 2 || !size_dist %in% c("loguniform", "uniform", "fixed")) return(NA_real_)
  if (size_min < min(sizes) || size_max > max(sizes)) return(NA_real_)
  grid <- if (size_dist == "uniform") log2(seq(size_min, size_max, length.out = 513))
          else seq(log2(size_min), log2(size_max), length.out = 513)
  mean(stats::approx(log2(sizes), cost, grid)$y)
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
  loop <- function(n) null$ns_per_op[null$threads == n]
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
  loop_one <- if (length(loop(1)) > 0) stats::median(loop(1)) else NA_real_
  fit <- model <- NULL
  for (n in sort(unique(own$threads))) {
    at <- own[own$threads == n, , drop = FALSE]
    scale <- if (n == 1) 1 else if (length(loop(n)) > 0) stats::median(loop(n)) / loop_one else NA_real_
    base <- if (nrow(one) > 0) stats::median(own_time(one, split)) else NA_real_
    os <- median_interval(if (split) at$sys_ns_per_op else numeric())
    whole <- median_interval(at$ns_per_op)
    gap <- base - metadata
    residual <- residual_interval(at, one, n, loop, split)
    predicted <- metadata * scale + if (split) os$value else 0
    fit <- rbind(
      fit,
      fit_row(whole, name, "T_alloc", n = n, source = source),
      fit_row(os, name, "T_os", n = n, source = source, reason = if (split) "" else os_unknown()),
      fit_row(median_interval(at$faults_per_op), name, "faults", n = n, unit = "1/op", source = source),
      if (n == 1) gap_row(name, own_time(one, split), metadata, source),
      if (n > 1) fit_row(residual$interval, name, "joint_residual", n = n, source = source, reason = residual$reason)
    )
    model <- rbind(model, data.frame(
      allocator = name, n = n, loop = loop_one * scale,
      metadata = (metadata - if (is.na(loop_one)) 0 else loop_one) * scale, os = os$value,
      gap = gap * scale, single = base * scale, residual = if (n == 1) 0 else residual$interval$value, predicted = predicted,
      measured = whole$value, low = whole$low, high = whole$high, launches = whole$launches,
      error = predicted / whole$value - 1
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
  if (length(loop(1)) == 0 || length(loop(n)) == 0) {
    return(list(interval = median_interval(numeric()), reason = NULL_UNKNOWN))
  }
  groups <- list(own_time(at, split), own_time(one, split), loop(n), loop(1))
  list(interval = combined_interval(groups, function(g) g[[1]] - g[[2]] * g[[3]] / g[[4]]), reason = "")
}

#' single_thread_gap of one allocator, from the times of its single-thread launches.
gap_row <- function(name, times, metadata, source) {
  if (is.na(metadata)) {
    return(no_number("single_thread_gap", "not identifiable here: no fastpath rows that cover churn's sizes",
                     allocator = name, n = 1, source = source))
  }
  fit_row(median_interval(times - metadata), name, "single_thread_gap", n = 1, source = source)
}

#' alpha and C_lock apart, where counters allow it; otherwise why not.
fit_coherence <- function(results) {
  rows <- fit_rows(whole_rows(results$runs))
  counted <- rows[is.finite(rows$hitm_local), , drop = FALSE]
  nodes <- node_count(results$meta)
  alpha_node <- if (is.na(nodes)) "not identifiable here: the number of NUMA nodes is not recorded"
                else if (nodes <= 1) "not identifiable here: one NUMA node"
                else "not identifiable here: no counter of lines moved between nodes"
  out <- no_number("alpha_node", alpha_node, unit = "1/op")
  if (nrow(counted) == 0) {
    reason <- counters_reason(rows)
    reason <- paste0("not identifiable here: no counter of lines fetched from other cores",
                     if (!is.na(reason)) paste0(" (", reason, ")"))
    return(rbind(no_number("alpha", reason, unit = "1/op"),
                 no_number("C_lock", "not identifiable here: only the sum with alpha * P_L3 is (joint_residual)"),
                 out))
  }
  counted$alpha <- (counted$hitm_local + ifelse(is.na(counted$hitm_remote), 0, counted$hitm_remote)) / counted$ops
  by <- group_intervals(counted, c("allocator", "threads"), "alpha")
  alpha <- do.call(rbind, lapply(seq_len(nrow(by)), function(i) {
    fit_row(by[i, ], by$allocator[i], "alpha", n = by$threads[i], unit = "1/op", source = source_text(counted))
  }))
  rbind(alpha, no_number("C_lock", paste("not identifiable here: alpha counts the lock's own lines too;",
                                         "joint_residual holds both")), out)
}

#' Predict T_metadata at sizes that were left out: every second measured size is held out and interpolated from
#' its neighbours (log2 size against log cost).
#' @param metadata the T_metadata rows of fit.csv
#' @return data.frame allocator, variant, size, measured, predicted, error (relative)
held_out <- function(metadata) {
  metadata <- metadata[metadata$term == "T_metadata" & is.finite(metadata$value) & metadata$value > 0, , drop = FALSE]
  groups <- split(metadata, list(metadata$variant, metadata$allocator), drop = TRUE)
  do.call(rbind, lapply(unname(groups), function(g) {
    g <- g[order(g$size), ]
    out <- seq_len(nrow(g)) %% 2 == 0 & seq_len(nrow(g)) < nrow(g)
    if (!any(out)) return(NULL)
    predicted <- exp(stats::approx(log2(g$size[!out]), log(g$value[!out]), log2(g$size[out]))$y)
    data.frame(allocator = g$allocator[out], variant = g$variant[out], size = g$size[out],
               measured = g$value[out], predicted = predicted, error = predicted / g$value[out] - 1)
  }))
}

#' The whole fit.
#' @return list(fit, model, held_out)
fit_model <- function(results) {
  metadata <- fit_metadata(results$runs)
  whole <- fit_whole(results$runs)
  fit <- rbind(metadata, fit_loop(results$runs, whole$folder), fit_penalty(results), fit_chase(results$runs), whole$fit,
               fit_coherence(results))
  rownames(fit) <- NULL
  list(fit = fit[FIT_COLUMNS], model = whole$model, held_out = held_out(metadata))
}
