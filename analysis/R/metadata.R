# T_metadata(S): bookkeeping of one pinned thread with a warm heap, by size; where it steps, found from the data; and sizes
# that were left out, predicted.

METADATA_HEAP <- "warm"
METADATA_VARIANT <- "pair"

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
    fit_row(launch_interval(g, x), g$allocator[1], term, g$variant[1], 1, g$size_min[1], source = source_text(g))
  }
  split <- os_resolved(rows) # for all or for none: to split off only where it is large would favour the slow
  do.call(rbind, lapply(unname(groups), function(g) {
    faults <- one(g, g$faults_per_op, "faults")
    faults$unit <- "1/op"
    rbind(one(g, own_time(g, split), "T_metadata"), if (split) one(g, g$sys_ns_per_op, "T_os"),
          if (is.finite(faults$value)) faults)
  }))
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

# ---- steps -------------------------------------------------------------------------------------------------

STEP_COLUMNS <- c("world", "allocator", "variant", "size_from", "size_to", "level", "unit", "step", "sizes", "launches")

# Differences below this are no step: a class boundary that costs less cannot be told from code that lies elsewhere.
STEP_LEAST <- 0.02

#' Where a sequence of levels changes: optimal partitioning, squared error plus a penalty for each change (Jackson et al., "An
#' algorithm for optimal partitioning of data on an interval", 2005; the penalty is Schwarz's, two parameters a change).
#' @param y log costs in order of size
#' @param sd their standard errors, a number or one each
#' @return segment number of each y, from 1
step_partition <- function(y, sd) {
  m <- length(y)
  if (m < 2) return(rep(1L, m))
  sd <- pmax(rep_len(sd, m), STEP_LEAST / 2)
  w <- 1 / sd^2
  sum_w <- cumsum(c(0, w))
  sum_y <- cumsum(c(0, w * y))
  sum_yy <- cumsum(c(0, w * y^2))
  error <- function(from, to) { # of the segments from..to, from a vector
    a <- sum_y[to + 1] - sum_y[from]
    sum_yy[to + 1] - sum_yy[from] - a^2 / (sum_w[to + 1] - sum_w[from])
  }
  penalty <- 2 * log(m)
  best <- c(-penalty, rep(NA_real_, m))
  from <- integer(m)
  for (to in seq_len(m)) {
    cost <- best[seq_len(to)] + error(seq_len(to), to) + penalty
    from[to] <- which.min(cost)
    best[to + 1] <- min(cost)
  }
  segment <- integer(m)
  to <- m
  while (to >= 1) {
    segment[from[to]:to] <- from[to]
    to <- from[to] - 1
  }
  match(segment, unique(segment))
}

#' Medians of T_metadata by size for one allocator and variant, with the noise of their logs.
#' @param rows launches; `time` of each
size_medians <- function(rows, time) {
  by <- split(time, rows$size_min)
  data.frame(size = as.numeric(names(by)), value = vapply(by, stats::median, 0, USE.NAMES = FALSE),
             sd = vapply(by, function(x) if (length(x) < 2) 0 else sqrt(pi / 2 / length(x)) * stats::sd(log(x)), 0,
                         USE.NAMES = FALSE),
             launches = lengths(by, use.names = FALSE))
}

#' The steps of T_metadata, by allocator and variant.
#' @param rows fastpath launches of one thread, `time` of each in `unit`
#' @param world native or simulated
#' @return data.frame of STEP_COLUMNS: between size_from and size_to (sizes that were measured) the cost is `level`; `step` is
#'   the change from the segment before, relative
fit_steps <- function(rows, time, world, unit) {
  rows$variant[is.na(rows$variant)] <- ""
  groups <- split(seq_len(nrow(rows)), list(rows$variant, rows$allocator), drop = TRUE)
  do.call(rbind, lapply(unname(groups), function(i) {
    at <- size_medians(rows[i, , drop = FALSE], time[i])
    segment <- step_partition(log(at$value), at$sd)
    level <- as.numeric(tapply(log(at$value), segment, mean))
    data.frame(world = world, allocator = rows$allocator[i[1]], variant = rows$variant[i[1]],
               size_from = as.numeric(tapply(at$size, segment, min)), size_to = as.numeric(tapply(at$size, segment, max)),
               level = exp(level), unit = unit, step = c(NA, expm1(diff(level))),
               sizes = as.numeric(table(segment)), launches = as.numeric(tapply(at$launches, segment, sum)))
  }))
}

#' Cost at sizes that were not measured: the level where both neighbours lie on one step, else between them (log size, log
#' cost), since where exactly a step lies between two sizes the data do not say.
#' @param at of size_medians
#' @param size wanted, bytes, within the range
predict_size <- function(at, size) {
  segment <- step_partition(log(at$value), at$sd)
  level <- stats::ave(log(at$value), segment)
  left <- findInterval(size, at$size, rightmost.closed = TRUE)
  same <- segment[left] == segment[left + 1]
  exp(ifelse(same, level[left], stats::approx(log2(at$size), log(at$value), log2(size))$y))
}

#' Every inner size left out once, with every second other one: two fits, each predicts the sizes of the other.
#' @param rows,time as in fit_steps
#' @return data.frame allocator, variant, size, measured, predicted, error (relative)
held_out_sizes <- function(rows, time) {
  rows$variant[is.na(rows$variant)] <- ""
  groups <- split(seq_len(nrow(rows)), list(rows$variant, rows$allocator), drop = TRUE)
  do.call(rbind, lapply(unname(groups), function(i) {
    at <- size_medians(rows[i, , drop = FALSE], time[i])
    at <- at[at$value > 0, , drop = FALSE]
    m <- nrow(at)
    inner <- setdiff(seq_len(m), c(1, m))
    do.call(rbind, lapply(0:1, function(fold) {
      out <- inner[inner %% 2 == fold]
      if (length(out) == 0) return(NULL)
      predicted <- predict_size(at[-out, , drop = FALSE], at$size[out])
      data.frame(allocator = rows$allocator[i[1]], variant = rows$variant[i[1]], size = at$size[out],
                 measured = at$value[out], predicted = predicted, error = predicted / at$value[out] - 1)
    }))
  }))
}

#' Sizes left out on this machine, all variants.
held_out <- function(runs) {
  rows <- metadata_rows(runs)
  if (nrow(rows) > 0) held_out_sizes(rows, own_time(rows, os_resolved(rows)))
}
