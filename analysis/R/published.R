# The published table of the contention paper beside ours, cell by cell.

PUBLISHED_SOURCE <- "contention paper"
PUBLISHED_METRICS <- data.frame(
  claim = c("paper.ops", "paper.p999", "paper.l3", "paper.rss"),
  metric = c("throughput", "p99.9 latency", "L3 miss ratio", "RSS overhead"),
  unit = c("Mop/s", "ns", "%", "MB"),
  column = c("ops_per_s", "lat_p999_ns", "l3_miss_ratio", "rss_overhead_bytes"),
  scale = c(1e-6, 1, 100, 1e-6)
)
PUBLISHED_PAIR <- c("mimalloc", "jemalloc")
PUBLISHED_ALLOCATORS <- c("glibc", "jemalloc", "mimalloc")

#' A published value, first measurement.
published_value <- function(claims, id, allocator) {
  v <- claims$values
  v$low[v$id == id & v$allocator == allocator & v$measurement == 1][1]
}

#' The published conditions of the contention paper as a named list.
published_conditions <- function(claims) source_conditions(claims, PUBLISHED_SOURCE)

#' Compare the published table with the data.
#' @return list(rows, cells = of all three allocators; details = a line a claim, reading and setting; verdicts = a line a
#'   claim; fixed = what was not varied, in words; several = more than one setting?)
compare_published <- function(results, claims) {
  rows <- hypothesis_rows(results, hypothesis_of(claims, "paper.ops"), claims, PUBLISHED_ALLOCATORS)
  tests <- lapply(PUBLISHED_METRICS$claim, function(id) test_hypothesis(results, hypothesis_of(claims, id), claims))
  details <- do.call(rbind, lapply(tests, `[[`, "cells"))
  verdicts <- do.call(rbind, lapply(tests, `[[`, "verdict"))
  verdicts$metric <- PUBLISHED_METRICS$metric
  cells <- hypothesis_cells(rows, hypothesis_of(claims, "paper.ops"))
  list(rows = rows, cells = cells, details = details, verdicts = verdicts, fixed = unvaried(rows),
       several = length(unique(vapply(cells, `[[`, "", "setting"))) > 1)
}
