# alpha: lines an operation fetches from another core's cache or another node's memory.

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
