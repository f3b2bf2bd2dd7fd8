# What it costs to hand a lock over, by how many threads are at it and by how far apart they are: lock_hold's own rows, which
# no allocator takes part in. A thread thinks, takes the lock, holds it, drops it. By Little's law n (1 - think / T) of n
# threads are at the lock, T being the time of one round. Where that is two or more the lock is never free, so that a round
# of one holder is T / n, and the hand-over is what that has beyond the same hold alone.

HANDOVER_COLUMNS <- c("world", "lock", "placement", "lines", "hold", "think", "n", "at", "value", "low", "high", "unit",
                      "launches", "method", "reason")
STEP_CYCLES <- 3    # of a step of hold and think, on the simulated machine
LEAST_AT <- 2       # threads at the lock on average: the holder, and one who waits
LEAST_HANDED <- 0.9 # share of takes by another thread than the last owner: below, the owner often has it again

#' Prices of a hand-over.
#' @param rows ok launches of lock_hold with a core for each thread, and `time`, the thread time of a round in `unit`
#' @param step time of a step in `unit`, of each row
#' @param metrics of read_results
#' @param world native or simulated
#' @return data.frame of HANDOVER_COLUMNS, NULL without rows; at: threads at the lock on average, the holder among them
handover_table <- function(rows, step, metrics, world, unit) {
  if (nrow(rows) == 0) return(NULL)
  for (name in c("hold", "think", "lines")) rows[[name]] <- param_number(rows, name)
  rows$think_time <- rows$think * step
  rows$handed <- metric_of(rows, metrics, "handover_ratio")
  cell <- c("variant", "placement", "lines", "hold", "think")
  key <- cell_key(rows, cell)
  several <- unique(rows[rows$threads > 1, c(cell, "threads"), drop = FALSE])
  do.call(rbind, lapply(seq_len(nrow(several)), function(i) {
    own <- rows[key == cell_key(several[i, ], cell), , drop = FALSE]
    at <- own[own$threads == several$threads[i], , drop = FALSE]
    handover_price(at, own[own$threads == 1, , drop = FALSE], world, unit)
  }))
}

#' One line of handover_table.
#' @param at launches of several threads, one of one thread
handover_price <- function(at, one, world, unit) {
  n <- at$threads[1]
  think <- stats::median(at$think_time)
  here <- n * (1 - think / stats::median(at$time))
  handed <- stats::median(at$handed)
  reason <- if (nrow(one) == 0) "not identifiable here: no single-thread rows"
            else if (is.na(think) || is.na(handed)) "not identifiable here: time of a step or number of hand-overs not known"
            else if (here < LEAST_AT) sprintf("not identifiable here: %s threads at the lock on average; it stood free",
                                              number_text(here))
            else if (handed < LEAST_HANDED) sprintf("not identifiable here: %.0f %% of takes by another thread", 100 * handed)
            else ""
  groups <- list(list(rows = at, x = at$time), list(rows = one, x = one$time - one$think_time))
  interval <- if (nzchar(reason)) median_interval(numeric()) else launch_combined(groups, function(m) m[[1]] / n - m[[2]])
  data.frame(world = world, lock = at$variant[1], placement = at$placement[1], lines = at$lines[1], hold = at$hold[1],
             think = at$think[1], n = n, at = here, value = interval$value, low = interval$low, high = interval$high, unit = unit,
             launches = nrow(at), method = interval$method, reason = reason)
}

#' On this machine.
native_handover <- function(results) {
  rows <- fit_rows(rows_of(results$runs, "lock_hold", "lock_hold"))
  rows$time <- rows$ns_per_op
  handover_table(rows, metric_of(rows, results$metrics, "step_ns"), results$metrics, "native", "ns")
}

#' On the simulated one, in cycles.
simulated_handover <- function(results) {
  rows <- rows_of(timed_launches(results), "lock_hold", "lock_hold-sim")
  rows$time <- rows$cycles
  handover_table(rows, rep(STEP_CYCLES, nrow(rows)), results$metrics, "simulated", "cycle")
}

# The least and the usual number of times that an operation takes the lock, from which the fit of the measured model begins:
# between them it may not find its way.
TAKES_TRIED <- c(0.05, 1)

#' The model of contention whose hand-over is measured: a closed queue, in which passing the lock to a waiter costs what
#' lock_hold says that it costs with so many threads there. What is left to fit is the time outside the lock, how long it is
#' held, and how often an operation takes it; and which of lock_hold's locks the allocator's is like.
#' @param prices of handover_table
#' @return a model as in CONTENTION_MODELS, with `forms`: a lock and a beginning each; NULL where no lock has a price
measured_model <- function(prices) {
  prices <- prices[is.finite(prices$value) & prices$placement %in% c("compact", NA), , drop = FALSE]
  if (is.null(prices) || nrow(prices) == 0) return(NULL)
  lines <- prices$lines[which.min(abs(prices$lines - 1))] # a lock's owner writes something, if not much
  prices <- prices[prices$lines == lines, , drop = FALSE]
  units <- c(think = "ns", service = "ns", takes = "1/op")
  forms <- lapply(split(prices, prices$lock), function(own) {
    at <- tapply(own$value, own$at, stats::median)
    price <- function(k) {
      known <- as.numeric(names(at))
      if (length(at) == 1) rep(max(0, at[[1]]), length(k)) else pmax(0, stats::approx(log(known), at, log(k), rule = 2)$y)
    }
    round <- function(p, n) { # think and service are of an operation and of a take
      k <- seq_len(max(n))
      p[3] * load_queue_time(p[1] / p[3], p[2] + ifelse(k > 1, price(k), 0), n)
    }
    lapply(TAKES_TRIED, function(takes) {
      list(label = own$lock[1], units = units, time = round,
           start = function(n, time) c(queue_start(n, time) * c(1, 0.2), takes))
    })
  })
  list(label = "closed queue with measured hand-over", units = units, parameters = length(units) + (length(forms) > 1),
       forms = unlist(unname(forms), recursive = FALSE))
}

#' The models of contention for a world, the measured one among them where there are prices.
#' @param prices of handover_table
contention_models <- function(prices) {
  measured <- measured_model(prices)
  c(CONTENTION_MODELS, if (!is.null(measured)) list(measured = measured))
}
