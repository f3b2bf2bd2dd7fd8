# Tests on pairs: is there a difference, are both the same within a margin, and how many launches would it take.
# All are exact for any number of pairs. None gives a verdict below MIN_LAUNCHES pairs, as there is no interval either.

POWER <- 0.8

#' Exact two-sided p-value of Wilcoxon's signed-rank test, ties by midranks, zeros left out: signs are exchangeable where
#' both of a pair have the same distribution (Hollander, Wolfe and Chicken, "Nonparametric statistical methods", 2014,
#' section 3.1). The distribution is counted over all signs, one rank after another.
#' @param x paired differences
signed_rank_p <- function(x) {
  x <- x[is.finite(x) & x != 0]
  if (length(x) == 0) return(1)
  ranks <- as.integer(round(2 * rank(abs(x)))) # midranks are halves
  share <- 1                                  # P(sum of positive ranks = 0, 1, 2, ...)
  for (r in ranks) share <- (c(share, rep(0, r)) + c(rep(0, r), share)) / 2
  sum_positive <- sum(ranks[x > 0])
  min(1, 2 * min(sum(share[seq_len(sum_positive + 1)]), sum(share[seq(sum_positive + 1, length(share))])))
}

#' Test whether two sets of paired launches differ: signed ranks of the log ratios. That a is slower in some repetitions and
#' faster in others by as much is no difference.
#' @param a,b positive numbers, paired by position
#' @param block of each pair; from MIN_LAUNCHES blocks on their medians are tested
#' @return data.frame value, low, high, launches, method (of paired_ratio), p, test; p is NA below MIN_LAUNCHES
difference <- function(a, b, alpha = ALPHA, block = NULL) {
  own <- replicates(log_ratios(a, b), block)
  ratio <- paired_ratio(a, b, 1 - alpha, block)
  enough <- length(own$x) >= MIN_LAUNCHES
  cbind(ratio, p = if (enough) signed_rank_p(own$x) else NA_real_, test = method_text("exact signed ranks", own$words))
}

#' Test whether two sets of paired launches are the same within a margin: two one-sided tests (Schuirmann, "A comparison of
#' the two one-sided tests procedure", 1987), each an exact sign test of the median log ratio, since at a margin no symmetry
#' can be had for granted. To pass both at alpha is to have the 1 - 2 alpha interval of order statistics within the margin.
#' @param a,b positive numbers, paired by position
#' @param margin over 0: the ratio is to lie between 1 / (1 + margin) and 1 + margin
#' @param block as in difference
#' @return data.frame value (ratio), low, high (1 - 2 alpha interval), launches, margin, p (the larger of the two), equivalent
#'   (TRUE, FALSE: not shown; NA below MIN_LAUNCHES), test
equivalence <- function(a, b, margin, alpha = ALPHA, block = NULL) {
  own <- replicates(log_ratios(a, b), block)
  n <- length(own$x)
  bounds <- exp(order_interval(own$x, 1 - 2 * alpha))
  limit <- log1p(margin)
  p <- if (n < MIN_LAUNCHES) NA_real_
       else max(stats::pbinom(sum(own$x >= limit), n, 0.5), stats::pbinom(sum(own$x <= -limit), n, 0.5))
  data.frame(value = if (n == 0) NA_real_ else exp(stats::median(own$x)), low = if (n < MIN_LAUNCHES) NA_real_ else bounds[1],
             high = if (n < MIN_LAUNCHES) NA_real_ else bounds[2], launches = n, margin = margin, p = p, equivalent = p <= alpha,
             test = method_text("two one-sided exact sign tests", own$words))
}

#' How many pairs a question takes, by the spread of those at hand, log ratios taken as normal around their median. A first
#' guess is that of the t-test, by the tests' efficiency against it (3/pi for signed ranks, 2/pi for signs and medians); up
#' to EXACT_PAIRS the power of the very tests is asked from there on, since few pairs make them coarse.
#' @param logs log ratios at hand
#' @param size over 0. difference: the least relative difference to find, 0.02 for 2 %; equivalence: the margin, both being
#'   equal; width: how wide the ratio's interval may be, upper to lower bound less 1
#' @param question difference, equivalence or width
#' @param power of the test, where there is one
#' @return data.frame needed (pairs in all), more (than at hand), spread (standard deviation of log ratios, from their
#'   quartiles); NA below MIN_LAUNCHES pairs
launches_needed <- function(logs, size, question = c("difference", "equivalence", "width"), alpha = ALPHA, power = POWER) {
  question <- match.arg(question)
  logs <- logs[is.finite(logs)]
  if (length(logs) < MIN_LAUNCHES) return(data.frame(needed = NA_real_, more = NA_real_, spread = NA_real_))
  spread <- stats::IQR(logs, type = 6) / (2 * stats::qnorm(0.75))
  if (spread == 0) spread <- stats::sd(logs) # half of the pairs or more are tied
  effect <- log1p(size) / spread
  z <- stats::qnorm(c(1 - alpha / 2, 1 - alpha, power, (1 + power) / 2))
  n <- switch(question, difference = (z[1] + z[3])^2 * pi / 3, equivalence = (z[2] + z[4])^2 * pi / 2,
              width = (2 * z[1])^2 * pi / 2) / effect^2
  n <- max(ceiling(n), order_least(if (question == "equivalence") 1 - 2 * alpha else 1 - alpha))
  power_at <- switch(question, difference = signed_rank_power, equivalence = equivalence_power)
  while (question != "width" && n < EXACT_PAIRS && power_at(n, effect, alpha) < power) n <- n + 1
  data.frame(needed = n, more = max(0, n - length(logs)), spread = spread)
}

EXACT_PAIRS <- 100
POWER_DRAWS <- 1000

#' Power of the signed-rank test of n normal pairs whose mean is `effect` standard deviations, by seeded draws.
signed_rank_power <- function(n, effect, alpha = ALPHA) {
  x <- with_seed(BOOT_SEED, matrix(stats::rnorm(n * POWER_DRAWS, effect), n))
  ranks <- matrix(rank(abs(x) + rep(seq_len(POWER_DRAWS) * 1e6, each = n)), n) # one ranking: columns far from each other
  sums <- colSums((ranks - rep((seq_len(POWER_DRAWS) - 1) * n, each = n)) * (x > 0))
  smaller <- pmin(sums, n * (n + 1) / 2 - sums)
  mean(2 * stats::psignrank(smaller, n) <= alpha)
}

#' Power of the two sign tests with n normal pairs of median 0 and margins of `effect` standard deviations, at least.
equivalence_power <- function(n, effect, alpha = ALPHA) {
  most <- stats::qbinom(alpha, n, 0.5)
  if (stats::pbinom(most, n, 0.5) > alpha) most <- most - 1
  2 * stats::pbinom(most, n, stats::pnorm(-effect)) - 1
}
