# The whole taken apart, by allocator and thread count, where counters see every line (the simulated machine's timed mode):
#
#   metadata   T_metadata(S) of the fast path, over the whole's sizes
#   further    instructions beyond those: the kernel's own loop, slow paths, spinning
#   memory     the working set in the private caches, L3 and memory, at chase's latencies; the same at every n
#   alpha      lines that another core's write to other words took away, at P_eff
#   node       memory of another node, at what it costs beyond the own one's
#   lock       the rest: waiting, and lines of the allocator's shared state
#
# The rest is E[C_lock] only as far as the counters see all else; at one thread, where nobody waits, it has to be 0.

DECOMPOSED <- c("metadata", "further", "memory", "alpha", "node", "lock")
DECOMPOSED_COLUMNS <- c("world", "allocator", "n", "term", "value", "low", "high", "unit", "launches", "method", "reason")

#' Each launch's terms, cycles per op.
#' @param rows of timed_launches
#' @param metadata number: the fast path's mean over the rows' sizes
#' @param cost of event_costs
#' @return data.frame of DECOMPOSED
launch_terms <- function(rows, metadata, cost) {
  sum_of <- function(names) {
    parts <- lapply(names, function(name) {
      count <- rows[[paste0("ev_", name)]]
      ifelse(count == 0, 0, count * cost[[name]])
    })
    Reduce(`+`, parts)
  }
  memory <- sum_of(c("l2", "l3", "dram", "read_shared"))
  alpha <- sum_of("false")
  node <- sum_of("node")
  data.frame(metadata = rep(metadata, nrow(rows)), further = rows$instr - metadata, memory = memory, alpha = alpha, node = node,
             lock = rows$cycles - rows$instr - memory - alpha - node)
}

#' The fast path's cycles by allocator.
#' @param timed of timed_launches
simulated_fastpath <- function(timed) {
  rows <- timed[timed$kernel %in% "fastpath" & timed$threads == 1 & timed$variant %in% METADATA_VARIANT, , drop = FALSE]
  rows <- rows_of(rows, "fastpath", "fastpath-sim")
  pick_slice(rows, c("variant", "size_min", "size_max", "work"))
}

# Where the whole and the contended fast path are looked for first, and the planted lock, which has a sweep of its own.
WHOLE_SWEEPS <- c("model-sim", "timed")
LOCKED_SWEEP <- "model-locked-sim"

#' The slice of churn that is taken apart: of a sweep that plants nothing, threads varying, and the planted lock's with it.
simulated_whole <- function(timed) {
  rows <- timed[timed$kernel %in% "churn", , drop = FALSE]
  with_locked(rows[!rows$folder %in% rows$folder[param_number(rows, "planted") %in% 1:16], , drop = FALSE])
}

#' One slice of the preferred sweep; and of LOCKED_SWEEP what differs from it in allocator and number of operations alone.
with_locked <- function(rows) {
  main <- pick_slice(rows_of(rows, rows$kernel[1], WHOLE_SWEEPS))
  locked <- rows[rows$sweep %in% LOCKED_SWEEP & !rows$allocator %in% main$allocator, , drop = FALSE]
  same <- setdiff(CELL_COLUMNS, "work")
  rbind(main, locked[cell_key(locked, same) %in% cell_key(main, same), , drop = FALSE])
}

#' T_metadata over a slice's size distribution, by allocator.
#' @param fast launches of fastpath, `time` of each
#' @return named numbers; NA where its sizes do not cover the slice's
mixed_metadata <- function(fast, time, slice) {
  allocators <- unique(slice$allocator)
  stats::setNames(vapply(allocators, function(a) {
    at <- size_medians(fast[fast$allocator == a, , drop = FALSE], time[fast$allocator == a])
    mean_over_sizes(at$size, at$value, slice$size_min[1], slice$size_max[1], slice$size_dist[1])
  }, 0), allocators)
}

#' Why a term has no value, or no interval.
value_reason <- function(by) {
  ifelse(!is.finite(by$value), "not identifiable here: no ok fastpath rows that cover these sizes",
         ifelse(!is.finite(by$low), paste0("no interval: fewer than ", least_of(by), " launches"), ""))
}

#' All of it.
#' @return list: terms (data.frame of DECOMPOSED_COLUMNS), rows (launches with their terms), cost, prices; or list(reason)
decompose <- function(results) {
  timed <- timed_launches(results)
  slice <- simulated_whole(timed)
  if (nrow(slice) == 0) return(list(reason = "not measured here: no ok rows of churn in the simulated machine's timed mode"))
  measured <- sim_prices(timed, results$metrics)
  prices <- used_prices(measured, machine_prices(timed, results$metrics))
  cost <- event_costs(prices)
  fast <- simulated_fastpath(timed)
  metadata <- mixed_metadata(fast, fast$cycles, slice)
  rows <- do.call(rbind, lapply(unique(slice$allocator), function(a) {
    own <- slice[slice$allocator == a, , drop = FALSE]
    cbind(own, launch_terms(own, metadata[[a]], cost))
  }))
  terms <- do.call(rbind, lapply(c(DECOMPOSED, "cycles"), function(term) {
    by <- group_intervals(rows, c("allocator", "threads"), term)
    data.frame(world = "simulated", allocator = by$allocator, n = by$threads,
               term = if (term == "cycles") "T_alloc" else term, value = by$value, low = by$low, high = by$high,
               unit = "cycle", launches = by$launches, method = by$method, reason = value_reason(by))
  }))
  terms <- terms[order(terms$allocator, terms$n, match(terms$term, c(DECOMPOSED, "T_alloc"))), , drop = FALSE]
  prices <- rbind(prices, effective_prices(timed, results$metrics, measured))
  list(terms = terms, rows = rows, cost = cost, prices = prices, metadata = metadata, fast = fast, timed = timed)
}
