# Latency quantiles from log-linear histograms.

SAMPLES_BEYOND <- 100   # a quantile needs this many samples above it
OVERHEAD_FACTOR <- 3    # below this multiple of the clock's overhead a quantile is an upper bound

#' Merge histograms of several launches bucket by bucket.
#' @param hist data.frame lower_ns, upper_ns, count
#' @return the same, one row a bucket, ordered
merge_hist <- function(hist) {
  if (nrow(hist) == 0) return(hist[c("lower_ns", "upper_ns", "count")])
  merged <- stats::aggregate(count ~ lower_ns + upper_ns, data = hist, FUN = sum)
  merged[order(merged$lower_ns), ]
}

#' Quantiles of a merged histogram: the upper bound of the bucket that holds them (never optimistic).
#' @param merged from merge_hist
#' @param p probabilities
#' @return ns; NA where fewer than SAMPLES_BEYOND samples lie beyond
hist_quantile <- function(merged, p) {
  total <- sum(merged$count)
  if (nrow(merged) == 0 || total == 0) return(rep(NA_real_, length(p)))
  at <- findInterval(p * total, cumsum(merged$count), left.open = TRUE) + 1
  value <- merged$upper_ns[pmin(at, nrow(merged))]
  value[total * (1 - p) < SAMPLES_BEYOND * (1 - 1e-9)] <- NA
  value
}

#' The points of a tail curve: probabilities evenly spaced on the axis -log10(1 - p).
tail_points <- function(deepest = 5, per_decade = 24) {
  1 - 10^-seq(log10(2) / 2, deepest, by = 1 / per_decade)
}
