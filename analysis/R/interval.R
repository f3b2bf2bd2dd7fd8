# Intervals of medians and other quantiles over launches, and of what is computed from several medians.

#' Distribution-free interval of a quantile from order statistics (the sign test turned around).
#' @param x numeric
#' @param p probability of the quantile, 0.5: the median
#' @return c(low, high) in the unit of x, coverage at least `confidence`; NA where x has too few values for that
order_interval <- function(x, confidence = CONFIDENCE, p = 0.5) {
  n <- length(x)
  tail <- (1 - confidence) / 2
  # The k-th smallest is over the quantile when fewer than k values are below it.
  low <- stats::qbinom(tail, n, p)
  while (low > 0 && stats::pbinom(low - 1, n, p) > tail) low <- low - 1
  high <- stats::qbinom(tail, n, 1 - p)
  while (high > 0 && stats::pbinom(high - 1, n, 1 - p) > tail) high <- high - 1
  if (low == 0 || high == 0) return(c(NA_real_, NA_real_))
  sorted <- sort(x)
  sorted[c(low, n + 1 - high)]
}

#' The least number of values that have an interval from order statistics.
order_least <- function(confidence = CONFIDENCE, p = 0.5) {
  max(MIN_LAUNCHES, ceiling(log((1 - confidence) / 2) / log(max(p, 1 - p)) - 1e-9))
}

#' How many launches an interval would have taken that there is not: more than MIN_LAUNCHES at a level over CONFIDENCE.
least_of <- function(interval) {
  method <- if (is.null(interval$method)) "" else interval$method
  ifelse(startsWith(method, "n<"), sub("n<", "", method, fixed = TRUE), as.character(MIN_LAUNCHES))
}

#' Bias-corrected and accelerated bootstrap interval of a quantile (draw_bounds).
#' @param x numeric
#' @return c(low, high)
bca_interval <- function(x, confidence = CONFIDENCE, p = 0.5) {
  draw_bounds(sample_quantile(x, p), boot_quantiles(x, p), acceleration(jackknife_quantile(x, p)), length(x), confidence)
}

#' Whether the bootstrap may be asked: replicates enough, on both sides of the quantile, and draws enough beyond the bounds.
bootstraps <- function(n, confidence = CONFIDENCE, p = 0.5) {
  n >= BCA_LAUNCHES && n * min(p, 1 - p) >= BCA_LAUNCHES / 4 && BOOT_RESAMPLES * (1 - confidence) / 2 >= BOOT_TAIL_DRAWS
}

#' Quantile over launches and its interval.
#' @param x numeric over launches, such as their p99.9; NA is dropped (not measured)
#' @param p probability of the quantile over launches
#' @param block as block_of gives it; then the quantile is that of the blocks' medians
#' @return one-row data.frame: value, low, high (unit of x), launches (or blocks), method
quantile_interval <- function(x, p = 0.5, confidence = CONFIDENCE, block = NULL) {
  own <- replicates(x, block)
  x <- own$x
  n <- length(x)
  if (n == 0) return(data.frame(value = NA_real_, low = NA_real_, high = NA_real_, launches = 0L, method = "none"))
  least <- order_least(confidence, p)
  if (bootstraps(n, confidence, p) && !own$few) {
    bounds <- bca_interval(x, confidence, p)
    method <- method_text("BCa", own$words)
  } else if (n >= least) {
    bounds <- order_interval(x, confidence, p)
    method <- method_text("order statistics", own$words)
  } else {
    bounds <- c(NA_real_, NA_real_)
    method <- paste0("n<", least)
  }
  data.frame(value = sample_quantile(x, p), low = bounds[1], high = bounds[2], launches = n, method = method)
}

#' Median over launches and its interval, as quantile_interval.
median_interval <- function(x, confidence = CONFIDENCE, block = NULL) quantile_interval(x, 0.5, confidence, block)

#' A function of medians of independent groups of launches.
#' From BCA_LAUNCHES launches on the bootstrap, BCa over all groups; below, variances recovered from the medians' own order
#' statistics: each group moves alone to its bound, and what that does to the result adds up in squares (Zou and Donner,
#' "Construction of confidence limits about effect measures", 2008).
#' @param groups list of numeric vectors; each resampled by its own stream
#' @param combine function(list of numbers or of equally long vectors) -> number or vector; monotone in each group
#' @param blocks of each group, as block_of gives it (NULL: none)
#' @return as median_interval; launches is the smallest group's. No value where a group is empty.
combined_interval <- function(groups, combine, confidence = CONFIDENCE, blocks = vector("list", length(groups))) {
  own <- Map(replicates, groups, blocks)
  groups <- lapply(own, `[[`, "x")
  words <- unique(Filter(nzchar, vapply(own, `[[`, "", "words")))
  few <- any(vapply(own, `[[`, NA, "few"))
  n <- min(lengths(groups))
  if (n == 0) return(median_interval(numeric()))
  medians <- lapply(groups, stats::median)
  value <- combine(medians)
  if (bootstraps(n, confidence) && !few) {
    draws <- combine(Map(boot_medians, groups, seq_along(groups)))
    jack <- unlist(lapply(seq_along(groups), function(g) {
      combine(replace_group(medians, g, jackknife_quantile(groups[[g]], 0.5)))
    }))
    bounds <- draw_bounds(value, draws, acceleration(jack, rep(seq_along(groups), lengths(groups))), n, confidence)
    method <- method_text("BCa", paste(words, collapse = ", "))
  } else {
    bounds <- recovered_bounds(groups, medians, value, combine, confidence)
    method <- if (n < order_least(confidence)) paste0("n<", order_least(confidence))
              else method_text("recovered variances", paste(words, collapse = ", "))
  }
  data.frame(value = value, low = bounds[1], high = bounds[2], launches = n, method = method)
}

#' Medians of groups with one group's replaced, all as long as that.
replace_group <- function(medians, g, x) {
  medians <- lapply(medians, rep, length(x))
  medians[[g]] <- x
  medians
}

#' The bounds of combined_interval for few launches.
recovered_bounds <- function(groups, medians, value, combine, confidence) {
  steps <- vapply(seq_along(groups), function(g) {
    bounds <- order_interval(groups[[g]], confidence)
    moved <- if (anyNA(bounds)) c(NA_real_, NA_real_) else combine(replace_group(medians, g, bounds)) - value
    c(min(moved, 0), max(moved, 0))
  }, c(0, 0))
  value + c(-1, 1) * sqrt(rowSums(steps^2))
}
