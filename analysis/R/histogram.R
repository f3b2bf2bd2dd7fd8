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

LATENCY_P <- c(lat_p50_ns = 0.5, lat_p90_ns = 0.9, lat_p99_ns = 0.99, lat_p999_ns = 0.999, lat_p9999_ns = 0.9999)

#' Cumulative counts of some launches over their common buckets.
#' @return list(upper = bucket bounds in ns, counts = buckets x launches, in the order of keys), NULL without samples
cumulative_hist <- function(results, keys, call = "malloc") {
  hist <- read_hist(results, keys, call)
  if (nrow(hist) == 0) return(NULL)
  upper <- sort(unique(hist$upper_ns))
  counts <- matrix(0, length(upper), length(keys))
  counts[cbind(match(hist$upper_ns, upper), match(hist$key, keys))] <- hist$count
  list(upper = upper, counts = apply(counts, 2, cumsum))
}

#' A quantile of each resample of merged launches.
#' @param cumulative from cumulative_hist
#' @param weights launches x resamples: how often each launch was drawn
merged_quantiles <- function(cumulative, weights, p) {
  merged <- cumulative$counts %*% weights
  total <- merged[nrow(merged), ]
  at <- colSums(merged < rep(p * total, each = nrow(merged))) + 1
  value <- cumulative$upper[pmin(at, length(cumulative$upper))]
  value[total * (1 - p) < SAMPLES_BEYOND * (1 - 1e-9)] <- NA
  value
}

#' How often each of n launches was drawn in each bootstrap resample.
boot_weights <- function(n) {
  cell <- boot_ranks(n) + rep((seq_len(BOOT_RESAMPLES) - 1L) * n, each = n)
  matrix(tabulate(cell, n * BOOT_RESAMPLES), n)
}

#' A quantile of merged histograms, or the ratio of two, with a bootstrap over launches: for quantiles that no single launch has
#' samples enough for. BCa from BCA_LAUNCHES on, below a percentile interval expanded for few launches.
#' @param keys launches; keys_over: the launches paired with them, whose quantile divides; NULL: none
#' @return as median_interval, method "merged"
#' @param block of the launches, as block_of gives it: from MIN_LAUNCHES blocks on those are drawn
merged_interval <- function(results, keys, p, keys_over = NULL, confidence = CONFIDENCE, block = NULL) {
  n <- length(keys)
  above <- cumulative_hist(results, keys)
  below <- if (!is.null(keys_over)) cumulative_hist(results, keys_over)
  if (n == 0 || is.null(above) || (!is.null(keys_over) && is.null(below))) return(median_interval(numeric()))
  quantile_of <- function(weights) {
    value <- merged_quantiles(above, weights, p)
    if (is.null(below)) value else value / merged_quantiles(below, weights, p)
  }
  merged_blocks(quantile_of, n, confidence, block)
}

#' merged_bootstrap over launches, or over blocks of launches where there are enough of them.
merged_blocks <- function(quantile_of, n, confidence, block) {
  own <- replicates(as.numeric(seq_len(n)), block)
  if (own$words == "" || own$few) return(merged_bootstrap(quantile_of, n, confidence))
  at <- match(block, unique(block))
  interval <- merged_bootstrap(function(weights) quantile_of(weights[at, , drop = FALSE]), max(at), confidence)
  interval$method <- method_text(interval$method, own$words)
  interval
}

#' The interval of merged_interval.
#' @param quantile_of function(weights) as merged_quantiles takes them
#' @param n launches
merged_bootstrap <- function(quantile_of, n, confidence = CONFIDENCE) {
  value <- quantile_of(matrix(1, n, 1))
  if (is.na(value)) return(median_interval(numeric()))
  out <- data.frame(value = value, low = NA_real_, high = NA_real_, launches = n, method = "merged")
  if (n >= MIN_LAUNCHES) {
    draws <- quantile_of(boot_weights(n))
    accel <- if (bootstraps(n, confidence)) acceleration(quantile_of(1 - diag(n)))
    out[c("low", "high")] <- draw_bounds(value, draws[is.finite(draws)], accel, n, confidence)
  }
  out
}

#' A latency quantile of launches: the median of their own, else that of their merged histograms.
#' @param rows ok rows of one allocator and cell
#' @param column lat_p50_ns and its like
latency_interval <- function(results, rows, column) {
  own <- launch_interval(rows, rows[[column]])
  if (own$launches > 0 || !column %in% names(LATENCY_P)) return(own)
  merged_interval(results, rows$key, LATENCY_P[[column]], confidence = confidence_of(rows), block = block_of(rows))
}
