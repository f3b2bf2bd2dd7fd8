# Medians with 95 % intervals over launches. A launch is the replicate; samples within one are not.

CONFIDENCE <- 0.95
MIN_LAUNCHES <- 6L    # below: no interval at all. 6 is the least n whose extremes cover a median at 95 %
BCA_LAUNCHES <- 20L   # from here on BCa; below, its corrections are too noisy: order statistics instead
BOOT_RESAMPLES <- 2000L
BOOT_SEED <- 20240607L

boot_cache <- new.env()

#' Evaluate code under a fixed seed and leave the caller's random state as it was.
#' @param seed integer
#' @param code evaluated lazily
with_seed <- function(seed, code) {
  had <- exists(".Random.seed", globalenv())
  if (had) old <- get(".Random.seed", globalenv())
  on.exit(if (had) assign(".Random.seed", old, globalenv()) else rm(".Random.seed", envir = globalenv()))
  set.seed(seed, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
  force(code)
}

#' Bootstrap indices for n launches: n x BOOT_RESAMPLES, the same for every call with the same n and
#' stream, so results do not depend on the order in which groups are computed.
#' @param n number of launches
#' @param stream separates independent samples that are combined
boot_indices <- function(n, stream = 0L) {
  key <- paste(n, stream)
  if (is.null(boot_cache[[key]])) {
    boot_cache[[key]] <- with_seed(BOOT_SEED + 1000L * stream + n,
                                   matrix(sample.int(n, n * BOOT_RESAMPLES, replace = TRUE), nrow = n))
  }
  boot_cache[[key]]
}

#' Medians of the bootstrap resamples of x: one sort over all of them, by resample and value.
boot_medians <- function(x, stream = 0L) {
  n <- length(x)
  resampled <- x[boot_indices(n, stream)]
  sorted <- matrix(resampled[order(rep(seq_len(BOOT_RESAMPLES), each = n), resampled, method = "radix")], nrow = n)
  (sorted[(n + 1) %/% 2, ] + sorted[n %/% 2 + 1, ]) / 2
}

#' Distribution-free interval of the median from order statistics (the sign test turned around).
#' @param x numeric, length >= MIN_LAUNCHES
#' @return c(low, high) in the unit of x; coverage at least CONFIDENCE
order_interval <- function(x) {
  n <- length(x)
  k <- stats::qbinom((1 - CONFIDENCE) / 2, n, 0.5)
  while (k > 0 && 2 * stats::pbinom(k - 1, n, 0.5) > 1 - CONFIDENCE) k <- k - 1
  sorted <- sort(x)
  sorted[c(k, n + 1 - k)]
}

#' Bias-corrected and accelerated bootstrap interval of the median. Method: the BCa construction
#' (bias from the share of resamples below the estimate, acceleration from the jackknife).
#' @param x numeric
#' @return c(low, high); the percentile interval where the corrections are not finite
bca_interval <- function(x) {
  n <- length(x)
  estimate <- stats::median(x)
  draws <- boot_medians(x)
  tail <- (1 - CONFIDENCE) / 2
  below <- mean(draws < estimate) + mean(draws == estimate) / 2
  jack <- vapply(seq_len(n), function(i) stats::median(x[-i]), 0)
  centred <- mean(jack) - jack
  accel <- sum(centred^3) / (6 * sum(centred^2)^1.5)
  if (!is.finite(accel)) accel <- 0
  bias <- stats::qnorm(below)
  z <- stats::qnorm(c(tail, 1 - tail))
  p <- stats::pnorm(bias + (bias + z) / (1 - accel * (bias + z)))
  if (!all(is.finite(p))) p <- c(tail, 1 - tail)
  as.numeric(stats::quantile(draws, p, type = 6, names = FALSE))
}

#' Median over launches and its interval.
#' @param x numeric over launches; NA is dropped (not measured)
#' @return one-row data.frame: value, low, high (unit of x), launches, method
median_interval <- function(x) {
  x <- x[is.finite(x)]
  n <- length(x)
  if (n == 0) return(data.frame(value = NA_real_, low = NA_real_, high = NA_real_, launches = 0L, method = "none"))
  if (n < MIN_LAUNCHES) {
    bounds <- c(NA_real_, NA_real_)
    method <- "n<6"
  } else if (n < BCA_LAUNCHES) {
    bounds <- order_interval(x)
    method <- "order statistics"
  } else {
    bounds <- bca_interval(x)
    method <- "BCa"
  }
  data.frame(value = stats::median(x), low = bounds[1], high = bounds[2], launches = n, method = method)
}

#' A function of medians of independent groups of launches, with a percentile bootstrap interval.
#' @param groups list of numeric vectors; each resampled by its own stream
#' @param combine function(list of numbers or of equally long vectors) -> number or vector
#' @return as median_interval; launches is the smallest group's. No value where a group is empty.
combined_interval <- function(groups, combine) {
  groups <- lapply(groups, function(x) x[is.finite(x)])
  n <- min(lengths(groups))
  if (n == 0) return(median_interval(numeric()))
  value <- combine(lapply(groups, stats::median))
  if (n < MIN_LAUNCHES) {
    return(data.frame(value = value, low = NA_real_, high = NA_real_, launches = n, method = "n<6"))
  }
  draws <- combine(Map(boot_medians, groups, seq_along(groups)))
  bounds <- stats::quantile(draws, c(1 - CONFIDENCE, 1 + CONFIDENCE) / 2, type = 6, names = FALSE)
  data.frame(value = value, low = bounds[1], high = bounds[2], launches = n, method = "percentile")
}

#' Ratio a/b as the exponential of the median paired log-ratio; the pairs share repetition and cell.
#' @param a,b positive numbers, paired by position
#' @return as median_interval, of the ratio
paired_ratio <- function(a, b) {
  keep <- is.finite(a) & is.finite(b) & a > 0 & b > 0
  interval <- median_interval(log(a[keep] / b[keep]))
  interval[c("value", "low", "high")] <- exp(interval[c("value", "low", "high")])
  interval
}
