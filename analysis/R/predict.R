# Held-out validation: what the fit says of cells that it did not see, against what was measured there.
#
#   size        T_metadata at sizes left out of the fast path's fit (metadata.R)
#   threads     the whole at one thread count, from the others: metadata, further instructions and working set as there, alpha(n)
#               drawn on over log2 n, waiting by the model of contention that predicts the others best
#   sizes       the whole with a size distribution that no fit saw: the fitted one's, and the difference of T_metadata
#   allocator   the whole of an allocator none of whose whole rows were used: T_metadata and contention from its own fast
#               path (one thread and contended), what the kernel itself and its working set cost from the other allocators
#
# Variants of one allocator count as one: none of them helps to predict another. Rows with more threads than CPUs enter nothing.

PREDICTED_COLUMNS <- c("world", "held_out", "allocator", "n", "size_min", "size_max", "predicted", "measured", "low", "high",
                       "unit", "error", "launches", "model", "reason")
# What the fit is asked for: the median of the relative errors' sizes.
HELD_OUT_GOALS <- c(single = 0.15, contended = 0.25)
LEAST_CELLS <- 6 # below, the median of some cells says neither that a goal is met nor that it is missed
LEFT_OUT <- c(all = "all", size = "sizes", threads = "thread counts", sizes = "size distributions", allocator = "allocators")

#' One predicted cell.
predicted_cell <- function(held_out, world, rows, time, predicted, unit, model = "", reason = "") {
  measured <- launch_interval(rows, time)
  data.frame(world = world, held_out = held_out, allocator = rows$allocator[1], n = rows$threads[1],
             size_min = rows$size_min[1], size_max = rows$size_max[1], predicted = predicted, measured = measured$value,
             low = measured$low, high = measured$high, unit = unit, error = predicted / measured$value - 1,
             launches = measured$launches, model = model, reason = reason)
}

#' alpha's time at a thread count, from others: linear in log2 n, never below zero; beyond the last as between the last two.
#' @param n,value medians by thread count, in order of n
#' @param at thread count
drawn_on <- function(n, value, at) {
  if (length(n) < 2) return(value)
  x <- log2(n)
  left <- min(max(findInterval(log2(at), x), 1), length(x) - 1)
  slope <- (value[left + 1] - value[left]) / (x[left + 1] - x[left])
  max(0, value[left] + slope * (log2(at) - x[left]))
}

#' alpha's time at n, from launches at other thread counts or at that one.
moved_at <- function(rows, n) {
  if (is.null(rows) || nrow(rows) == 0) return(NA_real_)
  at <- sort(unique(rows$threads))
  value <- vapply(at, function(k) stats::median(rows$moved[rows$threads == k]), 0)
  if (n %in% at) value[at == n] else drawn_on(at, value, n)
}

#' Each thread count of an allocator predicted from the others.
#' @param own launches of one allocator: threads, `time`, and `moved`, the part of time that alpha explains (0 where unknown)
#' @param unit of time
#' @param models of contention_models
predict_threads <- function(own, world, unit, models) {
  counts <- sort(unique(own$threads))
  if (length(counts) < 3) return(NULL)
  do.call(rbind, lapply(counts[counts > 1], function(n) {
    rest <- own[own$threads != n, , drop = FALSE]
    fit <- best_contention(rest$threads, rest$time - rest$moved, models)
    moved <- moved_at(rest, n)
    here <- own[own$threads == n, , drop = FALSE]
    predicted_cell("threads", world, here, here$time, if (is.null(fit)) NA_real_ else predict_contention(fit, n) + moved, unit,
                   if (is.null(fit)) "" else fit$model,
                   if (is.null(fit)) "no model of contention could be fitted" else "")
  }))
}

#' The whole at other sizes.
#' @param main launches of the fitted slice, other those of another; `metadata`, `other_metadata` by allocator
predict_sizes <- function(main, other, metadata, other_metadata, world, unit) {
  cells <- unique(other[c("allocator", "threads")])
  do.call(rbind, lapply(seq_len(nrow(cells)), function(i) {
    a <- cells$allocator[i]
    same <- function(rows) rows[rows$allocator == a & rows$threads == cells$threads[i], , drop = FALSE]
    from <- same(main)
    here <- same(other)
    if (nrow(from) == 0) return(NULL)
    predicted <- stats::median(from$time) + other_metadata[[a]] - metadata[[a]]
    predicted_cell("sizes", world, here, here$time, predicted, unit, "",
                   if (is.na(predicted)) "no fastpath rows that cover these sizes" else "")
  }))
}

#' "tlfl" of "tlfl-packed".
allocator_family <- function(name) sub("-.*", "", name)

#' The models of contention whose parameters are times, which another workload of the same locks shares.
LOCK_MODELS <- c("none", "queue", "handover", "ticket", "measured")

#' Each allocator predicted without any of its whole rows.
#' @param main launches of the whole: allocator, threads, time
#' @param metadata T_metadata over the whole's sizes, by allocator
#' @param contended launches of the contended fast path: allocator, threads, time, moved; NULL where there are none
predict_allocators <- function(main, metadata, contended, world, unit, models) {
  models <- models[intersect(LOCK_MODELS, names(models))]
  one <- main[main$threads == 1, , drop = FALSE]
  most <- names(which.max(table(one$work))) # a shorter run is colder: it says nothing of the others
  one <- one[one$work %in% most, , drop = FALSE]
  beyond <- vapply(unique(one$allocator), function(a) stats::median(one$time[one$allocator == a]) - metadata[[a]], 0)
  do.call(rbind, lapply(unique(main$allocator), function(a) {
    others <- tapply(beyond, allocator_family(names(beyond)), stats::median) # a family has one voice
    others <- others[names(others) != allocator_family(a)]
    single <- metadata[[a]] + median_or(as.numeric(others), NA_real_)
    own <- contended[contended$allocator %in% a, , drop = FALSE]
    fit <- if (length(unique(own$threads)) > 1) best_contention(own$threads, own$time - own$moved, models)
    do.call(rbind, lapply(sort(unique(main$threads)), function(n) {
      here <- main[main$allocator == a & main$threads == n, , drop = FALSE]
      if (nrow(here) == 0) return(NULL)
      wait <- if (n == 1) 0 else waiting_of(fit, single, n)
      moved <- if (n == 1) 0 else moved_at(own, n)
      reason <- if (is.na(single)) "not identifiable here: no fastpath rows that cover these sizes, or no other allocator"
                else if (is.na(wait + moved)) "not identifiable here: no contended fast path of it at this thread count"
                else ""
      predicted_cell("allocator", world, here, here$time, single + wait + moved, unit,
                     if (n == 1 || is.null(fit)) "" else fit$model, reason)
    }))
  }))
}

median_or <- function(x, otherwise) if (length(x) > 0) stats::median(x) else otherwise

LEAST_THINK <- 1e-6 # ns or cycles outside the lock: with exactly 0 a closed queue has a single state

#' Waiting at n threads of a workload that takes `single` alone, by a fit of another workload with the same locks.
waiting_of <- function(fit, single, n) {
  if (is.null(fit) || is.na(single)) return(NA_real_)
  p <- fit$parameters
  if (fit$model == "none") return(0)
  inside <- p[["service"]] * (if ("takes" %in% names(p)) p[["takes"]] else 1)
  p[["think"]] <- max(single - inside, LEAST_THINK)
  fit$time(p, n) - p[["think"]] - inside
}

# ---- both worlds -------------------------------------------------------------------------------------------

#' Predictions of simulated time.
#' @param decomposed of decompose
predict_simulated <- function(decomposed, models = CONTENTION_MODELS) {
  if (!is.null(decomposed$reason)) return(NULL)
  fast <- decomposed$fast
  timed <- decomposed$timed
  main <- transform(decomposed$rows, time = cycles, moved = alpha + node)
  sizes <- if (nrow(fast) > 0) size_cells(fast, fast$cycles, "simulated", "cycle")
  threads <- do.call(rbind, lapply(unique(main$allocator), function(a) {
    predict_threads(main[main$allocator == a, , drop = FALSE], "simulated", "cycle", models)
  }))
  rbind(sizes, threads, simulated_sizes(decomposed, main),
        predict_allocators(main, as.list(decomposed$metadata), contended_fastpath(timed, decomposed$cost), "simulated", "cycle",
                           models))
}

#' held_out_sizes as cells.
size_cells <- function(rows, time, world, unit) {
  held <- held_out_sizes(rows, time)
  if (is.null(held)) return(NULL)
  held <- held[held$variant %in% METADATA_VARIANT, , drop = FALSE]
  do.call(rbind, lapply(seq_len(nrow(held)), function(i) {
    here <- rows$allocator == held$allocator[i] & rows$size_min == held$size[i] & rows$variant %in% held$variant[i]
    predicted_cell("size", world, rows[here, , drop = FALSE], time[here], held$predicted[i], unit)
  }))
}

#' Slices of churn that differ from the fitted one in their sizes alone.
simulated_sizes <- function(decomposed, main) {
  rows <- decomposed$timed[decomposed$timed$kernel %in% "churn", , drop = FALSE]
  rows <- rows[rows$machine_id %in% main$machine_id, , drop = FALSE]
  columns <- setdiff(CELL_COLUMNS, c("size_min", "size_max", "size_dist"))
  same <- cell_key(rows, columns) %in% cell_key(main, columns) & rows$size_min != rows$size_max
  rows <- rows[same & cell_key(rows, "size_max") != main$size_max[1], , drop = FALSE]
  do.call(rbind, lapply(unname(split(rows, list(rows$size_min, rows$size_max), drop = TRUE)), function(other) {
    fast <- decomposed$fast
    other$time <- other$cycles
    predict_sizes(main, other, as.list(decomposed$metadata), as.list(mixed_metadata(fast, fast$cycles, other)), "simulated",
                  "cycle")
  }))
}

#' The contended fast path, with the part of its time that alpha explains; one slice, threads varying.
contended_fastpath <- function(timed, cost) {
  rows <- timed[timed$kernel %in% "fastpath", , drop = FALSE]
  rows <- rows[rows$folder %in% rows$folder[rows$threads > 1], , drop = FALSE]
  if (nrow(rows) == 0) return(NULL)
  rows <- with_locked(rows)
  moved <- launch_terms(rows, 0, cost)
  transform(rows, time = cycles, moved = moved$alpha + moved$node)
}

#' Predictions on this machine.
#' @param whole of fit_whole, for which launches it used
predict_native <- function(runs, models = CONTENTION_MODELS) {
  fast <- metadata_rows(runs)
  sizes <- if (nrow(fast) > 0) size_cells(fast, own_time(fast, os_resolved(fast)), "native", "ns")
  main <- fit_rows(whole_rows(runs))
  if (nrow(main) == 0) return(sizes)
  fast <- fast[fast$variant %in% METADATA_VARIANT, , drop = FALSE]
  split <- os_resolved(main) && os_resolved(fast)
  metadata <- mixed_metadata(fast, own_time(fast, split), main)
  main$time <- own_time(main, split)
  main$moved <- rep(0, nrow(main)) # without counters of lines that move, they are part of what the models of contention fit
  threads <- do.call(rbind, lapply(unique(main$allocator), function(a) {
    predict_threads(main[main$allocator == a, , drop = FALSE], "native", "ns", models)
  }))
  rbind(sizes, threads, predict_allocators(main, as.list(metadata), NULL, "native", "ns", models))
}

#' Held-out errors in one line a world, kind of cell and way of holding out.
#' @param predicted data.frame of PREDICTED_COLUMNS
#' @return data.frame world, kind (single, contended), held_out, cells, median, worst, worst_at, within, goal,
#'   launches (range of the cells'), verdict (met, missed, or that it was not judged)
held_out_summary <- function(predicted) {
  predicted <- predicted[is.finite(predicted$error), , drop = FALSE]
  if (is.null(predicted) || nrow(predicted) == 0) return(NULL)
  predicted$kind <- ifelse(predicted$n > 1, "contended", "single")
  one <- function(own, held_out) {
    size <- abs(own$error)
    worst <- own[which.max(size), ]
    goal <- HELD_OUT_GOALS[[own$kind[1]]]
    data.frame(world = own$world[1], kind = own$kind[1], held_out = held_out, cells = nrow(own), median = stats::median(size),
               worst = max(size), worst_at = sprintf("%s, %s, %s B", worst$allocator, plural(worst$n, "thread"),
                                                     sizes_text(worst$size_min, worst$size_max)),
               within = mean(size < goal), goal = goal, launches = paste(unique(range(own$launches)), collapse = " to "),
               verdict = if (nrow(own) < LEAST_CELLS) paste("not judged: fewer than", LEAST_CELLS, "cells")
                         else if (stats::median(size) < goal) "met" else "missed")
  }
  groups <- split(predicted, list(predicted$kind, predicted$world), drop = TRUE)
  do.call(rbind, lapply(unname(groups), function(g) {
    rbind(one(g, "all"), do.call(rbind, lapply(unname(split(g, g$held_out)), function(own) one(own, own$held_out[1]))))
  }))
}

#' "64" or "16 to 4096".
sizes_text <- function(size_min, size_max) {
  if (is.na(size_min)) return("any")
  if (size_min == size_max) format(size_min) else paste(size_min, "to", size_max)
}

#' What `make fit` prints: errors by world, kind and way of holding out, then by thread count and size.
held_out_lines <- function(predicted) {
  summary <- held_out_summary(predicted)
  if (is.null(summary)) return("held out: no cell could be predicted in these data")
  percent <- function(x) sprintf("%.1f %%", 100 * x)
  world <- c(native = "this machine", simulated = "simulated machine")
  head <- summary$held_out == "all"
  begin <- ifelse(head, sprintf("held out, %s, %s", world[summary$world],
                                c(single = "one thread", contended = "several threads")[summary$kind]),
                  sprintf("  %s left out", LEFT_OUT[summary$held_out]))
  said <- sprintf("%s: median error %s, worst %s (%s), %s of %s launches each; goal %s: %s", begin,
                  vapply(summary$median, percent, ""), vapply(summary$worst, percent, ""), summary$worst_at,
                  vapply(summary$cells, plural, "", one = "cell"), summary$launches, vapply(summary$goal, percent, ""),
                  summary$verdict)
  c(said, cell_lines(predicted, percent))
}

#' Median errors by thread count and size.
cell_lines <- function(predicted, percent) {
  predicted <- predicted[is.finite(predicted$error), , drop = FALSE]
  predicted$size <- mapply(sizes_text, predicted$size_min, predicted$size_max)
  groups <- split(predicted, factor(paste(predicted$world, predicted$n, predicted$size),
                                    unique(paste(predicted$world, predicted$n, predicted$size))))
  groups <- groups[order(vapply(groups, function(g) sprintf("%s %05d %08d", g$world[1], g$n[1], g$size_max[1]), ""))]
  vapply(unname(groups), function(g) {
    sprintf("  %s, n = %d, S = %s B: median %s, worst %s of %s", g$world[1], g$n[1], g$size[1],
            percent(stats::median(abs(g$error))), percent(max(abs(g$error))), plural(nrow(g), "cell"))
  }, "")
}
