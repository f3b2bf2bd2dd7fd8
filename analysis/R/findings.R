# What the results section says in words: who leads and who trails, each with its interval.

#' "tlfl (117 [116, 118] Mop/s)"
named_value <- function(row, registry, unit, scale = 1) {
  row[c("value", "low", "high")] <- row[c("value", "low", "high")] * scale
  paste0(tex_escape(allocator_label(registry, row$allocator)), " (", number_text(row$value), " ", interval_tex(row),
         if (nzchar(unit)) " ", unit, ")")
}

#' The rows with the least and the greatest value.
extremes <- function(by, registry, unit, scale = 1) {
  by <- by[is.finite(by$value), , drop = FALSE]
  if (is.null(by) || nrow(by) == 0) return(c(least = NA_character_, most = NA_character_))
  c(least = named_value(by[which.min(by$value), ], registry, unit, scale),
    most = named_value(by[which.max(by$value), ], registry, unit, scale))
}

#' Churn rows at the largest thread count with a CPU for every thread.
full_speed_rows <- function(rows) {
  rows <- ok_rows(rows)
  rows <- rows[rows$threads <= rows$cpus, , drop = FALSE]
  if (nrow(rows) > 0) rows <- rows[rows$threads == max(rows$threads), , drop = FALSE]
  rows
}

#' Macros of the results section.
finding_macros <- function(results, registry) {
  throughput <- full_speed_rows(pick_slice(rows_of(results$runs, "churn", c("contention", "paper"))))
  rate <- extremes(group_intervals(throughput, "allocator", "ops_per_s"), registry, "Mop/s", 1e-6)
  pair <- allocator_ratio(throughput, PUBLISHED_PAIR[1], PUBLISHED_PAIR[2], "ops_per_s")
  latency <- full_speed_rows(latency_rows(results$runs))
  tail <- extremes(group_intervals(latency, "allocator", "lat_p99_ns"), registry, "ns")
  sharing <- extremes(smallest_object(false_sharing_ratios(results$runs)), registry, "times")
  memory <- rows_of(results$runs, "churn", c("paper", "contention"))
  memory <- ok_rows(memory)
  memory <- memory[is.finite(memory$rss_overhead_bytes), , drop = FALSE]
  if (nrow(memory) > 0) memory <- pick_slice(memory[memory$threads == max(memory$threads), , drop = FALSE])
  rss <- extremes(group_intervals(memory, "allocator", "rss_overhead_bytes"), registry, "MB", 1e-6)
  no_churn <- "no ok churn rows with a CPU for every thread"
  c(findThreads = macro_value(if (nrow(throughput) > 0) count_text(throughput$threads[1]), no_churn),
    findRateMost = macro_value(rate[["most"]], no_churn), findRateLeast = macro_value(rate[["least"]], no_churn),
    findPair = macro_value(if (is.finite(pair$value)) paste(number_text(pair$value), interval_tex(pair)),
                           "no paired launches of mimalloc and jemalloc"),
    findTailLeast = macro_value(tail[["least"]], "too few latency samples"),
    findTailMost = macro_value(tail[["most"]], "too few latency samples"),
    findSharingLeast = macro_value(sharing[["least"]], "no pairs of shared and private rows"),
    findSharingMost = macro_value(sharing[["most"]], "no pairs of shared and private rows"),
    findRssLeast = macro_value(rss[["least"]], "no memory pass"), findRssMost = macro_value(rss[["most"]], "no memory pass"))
}
