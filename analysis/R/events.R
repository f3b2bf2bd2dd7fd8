# What an operation of the simulated machine's timed mode is made of: instructions, and lines by where they came from, with
# their prices in cycles. Counted there, not inferred; on a machine without such counters nothing of this file has a number.

# Lines an op by class. An access costs what a hit of the L1 costs in any case: prices are over it.
#   l2, l3        own L2; own node's L3, lines that another core took away before not among them
#   dram          memory, at the price of the own node's
#   read_shared   stores to lines that another core has only read (the harness, as it looks at live blocks)
#   false         lines fetched anew because another core wrote other words of them: alpha
#   node          memory of another node, at what it costs beyond the own node's: alpha of remote memory
#   sync          lines fetched anew for a word that another core wrote. No thread of churn or fastpath hands another one
#                 anything, so such a word is the allocator's own shared state, a lock or what lies under it: C_lock
EVENTS <- c("l2", "l3", "dram", "read_shared", "false", "node", "sync")

#' Ok rows of timed mode with a core for each thread, and their events per operation.
#' @return rows of results$simulated with `cycles` (of thread time per op), `work` left as it is, `instr` and ev_*
timed_launches <- function(results) {
  rows <- ok_rows(results$simulated)
  rows <- rows[rows$sim_mode %in% "timed" & is.finite(rows$sim_cycles_per_op) & rows$oversubscribed %in% 0, , drop = FALSE]
  per_op <- function(count) count / rows$ops
  hitm <- rows$hitm_local + rows$hitm_remote
  again <- rows$sim_true_sharing + rows$sim_false_sharing
  rows$cycles <- rows$sim_cycles_per_op
  rows$instr <- per_op(rows$instructions)
  rows$ev_l2 <- per_op(rows$l1d_miss - rows$l3_access)
  rows$ev_l3 <- per_op(pmax(0, rows$l3_access - rows$l3_miss - rows$hitm_local - pmax(0, again - hitm)))
  rows$ev_dram <- per_op(rows$sim_dram_local + rows$sim_dram_remote)
  rows$ev_node <- per_op(rows$sim_dram_remote)
  rows$ev_false <- per_op(rows$sim_false_sharing)
  rows$ev_sync <- per_op(rows$sim_true_sharing)
  rows$ev_transfer <- per_op(hitm)
  rows$ev_upgrade <- metric_of(rows, results$metrics, "sim_upgrades") / rows$ops
  rows$ev_read_shared <- pmax(0, rows$ev_upgrade - rows$ev_false - rows$ev_sync)
  rows
}

PRICES <- c("l1", "l2", "l3", "dram_local", "dram_remote", "core_local", "core_remote")
# Share of a chase's loads that one level has to serve for the median to be that level's.
LEVEL_SHARE <- 0.95

#' Prices in cycles: levels from chase, by the counters of its own rows; lines of other cores from planted lines.
#' @param timed of timed_launches
#' @return data.frame price, value, launches, from; NA with the reason in `from`
sim_prices <- function(timed, metrics) {
  chase <- timed[timed$kernel %in% "chase" & timed$threads == 1, , drop = FALSE]
  miss <- chase$l1d_miss / chase$ops
  local <- chase$ev_dram - chase$ev_node
  level <- ifelse(miss < 1 - LEVEL_SHARE, "l1", NA)
  for (one in list(list("l2", chase$ev_l2), list("l3", chase$ev_l3), list("dram_local", local),
                   list("dram_remote", chase$ev_node))) {
    level[one[[2]] > LEVEL_SHARE] <- one[[1]]
  }
  planted <- planted_rows(timed[timed$kernel %in% "churn", , drop = FALSE], metrics)
  do.call(rbind, lapply(PRICES, function(price) {
    if (startsWith(price, "core")) return(core_price(planted, price))
    own <- chase[level %in% price, , drop = FALSE]
    data.frame(price = price, value = if (nrow(own) > 0) stats::median(own$cycles) else NA_real_, launches = nrow(own),
               from = if (nrow(own) > 0) "chase" else "not measured here: no chase whose loads are served there")
  }))
}

#' Price of one line from another core, or of the right to write one: cycles over transfers and upgrades, both as slopes over
#' planted lines.
core_price <- function(planted, price) {
  placement <- if (price == "core_local") "compact" else "scatter"
  own <- planted[planted$placement %in% placement, , drop = FALSE]
  moving <- own[own$moved > 0, , drop = FALSE]
  as_meant <- nrow(moving) > 0 && all((moving$hitm_remote > moving$hitm_local) == (price == "core_remote"))
  over <- function(y) planted_slope(transform(own, y = y))
  value <- if (as_meant) over(own$cycles) / over(own$ev_transfer + own$ev_upgrade) else NA_real_
  data.frame(price = price, value = value, launches = nrow(own),
             from = if (is.finite(value)) "planted lines in churn" else "not measured here: no planted lines at that distance")
}

#' P_eff on the simulated machine: cycles an op for one planted line that moved, over the price of one transfer.
#' @param prices of sim_prices, for the quotient
#' @return rows as of sim_prices
effective_prices <- function(timed, metrics, prices) {
  planted <- planted_rows(timed[timed$kernel %in% "churn", , drop = FALSE], metrics)
  do.call(rbind, lapply(c("compact", "scatter"), function(placement) {
    own <- planted[planted$placement %in% placement, , drop = FALSE]
    value <- if (nrow(own) > 0) planted_slope(transform(own, y = own$cycles)) else NA_real_
    one <- prices$value[prices$price == c(compact = "core_local", scatter = "core_remote")[[placement]]]
    from <- if (is.finite(value / one)) sprintf("planted lines in churn; %.2f times the price of one transfer", value / one)
            else "not measured here: no planted lines at that distance"
    data.frame(price = paste0("P_eff, ", placement), value = value, launches = nrow(own), from = from)
  }))
}

#' The machine's own numbers, for prices that no kernel measured: what its file states, cycles.
machine_prices <- function(timed, metrics) {
  own <- metrics[metrics$name == "sim_machine" & metrics$key %in% timed$key, , drop = FALSE]
  if (nrow(own) == 0) return(NULL)
  part <- function(name, field = 1) {
    pattern <- sprintf("(^|.*,)%s=([0-9:]+).*", name)
    if (!grepl(pattern, own$value[1])) return(NA_real_)
    as.numeric(strsplit(sub(pattern, "\\2", own$value[1]), ":")[[1]][field])
  }
  c(l1 = part("l1", 3), l2 = part("l2", 3), l3 = part("l3", 3), dram_local = part("memory_local"),
    dram_remote = part("memory_remote"), core_local = part("cache_local"), core_remote = part("cache_remote"))
}

#' The prices that are used: what a kernel measured, and else what the machine's file states.
#' @param prices of sim_prices
#' @param stated of machine_prices
#' @return rows as of sim_prices; of a stated price launches is 0 and `from` says why it is none that was measured
used_prices <- function(prices, stated) {
  if (is.null(stated)) return(prices)
  # A core's price is a difference already: a line that moves is an access beyond those that hit.
  stated[c("core_local", "core_remote")] <- stated[c("core_local", "core_remote")] - stated[["l1"]]
  filled <- !is.finite(prices$value) & is.finite(stated[prices$price])
  prices$value[filled] <- stated[prices$price[filled]]
  prices$launches[filled] <- 0L
  prices$from[filled] <- sub("not measured here", "the machine's file", prices$from[filled], fixed = TRUE)
  prices
}

#' Cycles of each event beyond a hit of the L1.
#' @param prices of used_prices
#' @return named numbers by EVENTS; NA where a price is neither measured nor stated
event_costs <- function(prices) {
  value <- stats::setNames(prices$value, prices$price)
  # A load that finds another core's line and the store that follows wait once each.
  c(l2 = value[["l2"]] - value[["l1"]], l3 = value[["l3"]] - value[["l1"]], dram = value[["dram_local"]] - value[["l1"]],
    read_shared = value[["core_local"]], false = 2 * value[["core_local"]],
    node = value[["dram_remote"]] - value[["dram_local"]], sync = 2 * value[["core_local"]])
}
