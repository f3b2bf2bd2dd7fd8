# Ratios and differences of launches that are pairs: they share repetition and cell.

#' Logs of the ratios of pairs; NA where one of the two was not measured.
log_ratios <- function(a, b) {
  good <- is.finite(a) & is.finite(b) & a > 0 & b > 0
  ifelse(good, suppressWarnings(log(a / b)), NA_real_)
}

#' Ratio a/b as the exponential of the median paired log-ratio.
#' @param a,b positive numbers, paired by position
#' @param block of each pair, as block_of gives it
#' @return as median_interval, of the ratio
paired_ratio <- function(a, b, confidence = CONFIDENCE, block = NULL) {
  interval <- median_interval(log_ratios(a, b), confidence, block)
  interval[c("value", "low", "high")] <- exp(interval[c("value", "low", "high")])
  interval
}

#' Difference a - b as the median paired difference.
#' @return as median_interval, in the unit of a and b
paired_difference <- function(a, b, confidence = CONFIDENCE, block = NULL) median_interval(a - b, confidence, block)
