# Error rates on synthetic data: intervals hold, tests err and find as often as they say. Times are skewed, as launches are (what
# disturbs one makes it longer), or tied, as a coarse clock makes them.

skewed_times <- function(n, median = 100, noise = 0.05) median * exp(noise * (rexp(n) - log(2)))
tied_times <- function(n) sample(10:13, n, replace = TRUE, prob = c(0.3, 0.4, 0.2, 0.1)) # median 11

test_that("medians: order statistics hold exactly, with skew and with ties", {
  for (n in c(6, 8, 15, 19)) {
    hits <- count_draws(n, function() {
      inside <- function(x, truth) covers(median_interval(x), truth)
      c(inside(skewed_times(n), 100), inside(tied_times(n), 11))
    })
    expect_exact(hits)
  }
})

test_that("medians: BCa holds from 20 launches on, with skew and with ties", {
  for (n in c(20, 31)) {
    expect_bootstrap(count_draws(n, function() {
      c(covers(median_interval(skewed_times(n)), 100), covers(median_interval(tied_times(n)), 11))
    }))
  }
})

test_that("ratios of pairs hold, with skew and with ties", {
  ratio_holds <- function(n) {
    common <- exp(rnorm(n, 0, 0.3)) # what both of a pair share cancels
    skew <- paired_ratio(110 * common * skewed_times(n, 1), 100 * common * skewed_times(n, 1))
    c(covers(skew, 1.1), covers(paired_ratio(tied_times(n), tied_times(n)), 1))
  }
  for (n in c(8, 15)) expect_exact(count_draws(n, function() ratio_holds(n)))
  expect_bootstrap(count_draws(24, function() ratio_holds(24)))
})

test_that("percentiles: medians and upper quantiles of launches' p99.9 hold", {
  # The p99.9 of 100,000 exponential samples, by the distribution of order statistics, times what differs between launches.
  tails <- function(n) 50 * qexp(rbeta(n, 99900, 101)) * exp(rnorm(n, 0, 0.1))
  truth <- with_seed(1, stats::quantile(tails(2e5), c(0.5, 0.9)))
  few <- count_draws(12, function() covers(median_interval(tails(12)), truth[1]))
  wide <- count_draws(40, function() covers(quantile_interval(tails(40), 0.9), truth[2]))
  expect_exact(c(few, wide))
  many <- count_draws(60, function() {
    x <- tails(60)
    c(covers(median_interval(x), truth[1]), covers(quantile_interval(x, 0.9), truth[2]))
  })
  expect_bootstrap(many)
})

test_that("percentiles of merged launches hold", {
  upper <- 10 * 1.15^(0:40)
  launch <- function() cumsum(rmultinom(1, 20000, diff(c(0, pexp(upper, 1 / (50 * exp(rnorm(1, 0, 0.05))))))))
  held <- function(n, p, truth) {
    cumulative <- list(upper = upper, counts = replicate(n, launch()))
    interval <- merged_bootstrap(function(weights) merged_quantiles(cumulative, weights, p), n)
    covers(interval, truth)
  }
  many <- list(upper = upper, counts = with_seed(2, replicate(2000, launch())))
  truth <- merged_quantiles(many, matrix(1, 2000, 1), 0.99)
  for (n in c(8, 24)) expect_bootstrap(count_draws(n, function() held(n, 0.99, truth)))
})

test_that("sums and ratios of several medians hold, from few launches and from many", {
  combine <- function(g) g[[1]] - g[[2]] * g[[3]] / g[[4]]
  truth <- 150 - 100 * 6 / 5
  for (n in c(6, 8, 14, 24)) {
    hits <- count_draws(n, function() {
      groups <- list(skewed_times(n, 150), skewed_times(n), skewed_times(n, 6), skewed_times(n, 5))
      covers(combined_interval(groups, combine), truth)
    })
    expect_bootstrap(hits)
  }
})

test_that("difference: wrong no more often than alpha where there is none, with skew and with ties", {
  for (n in c(6, 9, 14, 25)) {
    wrong <- count_draws(n, function() {
      p <- function(a, b) signed_rank_p(log_ratios(a, b))
      c(p(skewed_times(n), skewed_times(n)), p(tied_times(n), tied_times(n))) <= ALPHA
    }, 2 * DRAWS)
    expect_level(wrong, 2 * DRAWS)
  }
})

test_that("difference is that test, beside the ratio and its interval", {
  x <- with_seed(5, skewed_times(12))
  y <- rev(x) * 1.2
  test <- difference(x, y)
  expect_equal(test$p, signed_rank_p(log(x / y)))
  expect_equal(test[1:5], paired_ratio(x, y))
})

test_that("signed ranks are those of stats::wilcox.test", {
  x <- c(0.3, -0.1, 1.2, 0.8, -0.4, 2.2, 0.05, 0.6)
  expect_equal(signed_rank_p(x), stats::wilcox.test(x, exact = TRUE)$p.value)
  # By hand: midranks 1.5, 1.5, 3; of the 8 choices of signs one has them all positive.
  expect_equal(signed_rank_p(c(1, 1, 2, 0, NA)), 2 / 8)
  expect_equal(signed_rank_p(c(0, 0)), 1)
})

#' Pairs whose log ratios are normal, as launches_needed takes them.
normal_pairs <- function(n, ratio, noise = 0.04) list(a = ratio * exp(rnorm(n, 0, noise)), b = rep(1, n))

test_that("difference and equivalence find what launches_needed says, with the power it says", {
  logs <- log(with_seed(1, normal_pairs(4000, 1)$a))
  n <- launches_needed(logs, 0.05, "difference")$needed
  found <- count_draws(2, function() with(normal_pairs(n, 1.05), difference(a, b)$p <= ALPHA))
  expect_gte(found, stats::qbinom(UNLUCKY, DRAWS, POWER))
  n <- launches_needed(logs, 0.05, "equivalence")$needed
  found <- count_draws(3, function() with(normal_pairs(n, 1), equivalence(a, b, 0.05)$equivalent))
  expect_gte(found, stats::qbinom(UNLUCKY, DRAWS, POWER))
  n <- launches_needed(logs, 0.04, "width")$needed
  width <- with_seed(4, replicate(DRAWS, with(normal_pairs(n, 1), {
    interval <- paired_ratio(a, b)
    interval$high / interval$low - 1
  })))
  expect_equal(stats::median(width), 0.04, tolerance = 0.2)
})

test_that("launches_needed knows its limits", {
  expect_true(all(is.na(launches_needed(rnorm(5), 0.1, "difference"))))
  calm <- launches_needed(rep(c(-1e-6, 1e-6), 4), 0.1, "difference")
  expect_equal(c(calm$needed, calm$more), c(MIN_LAUNCHES, 0))
  tied <- launches_needed(c(rep(0, 8), 0.2), 0.01, "width")
  expect_gt(tied$spread, 0)
  expect_gt(tied$more, 0)
})

test_that("equivalence: wrong no more often than alpha at either margin, with skew", {
  for (n in c(6, 8, 30)) for (ratio in c(1.05, 1 / 1.05)) {
    wrong <- count_draws(n, function() equivalence(ratio * skewed_times(n, 1, 0.02), rep(1, n), 0.05)$equivalent, 2 * DRAWS)
    expect_level(wrong, 2 * DRAWS)
  }
})

test_that("equivalence is the 90 % interval within the margin, and needs six pairs", {
  x <- with_seed(6, skewed_times(200, 1, 0.02))
  for (from in seq(1, 180, 20)) {
    test <- equivalence(x[from + 0:11], rep(1, 12), 0.02)
    expect_equal(test$equivalent, test$low > 1 / 1.02 && test$high < 1.02)
  }
  few <- equivalence(x[1:5], rep(1, 5), 0.02)
  expect_true(is.na(few$equivalent) && is.na(few$p) && is.na(few$low))
  expect_true(is.na(difference(x[1:5], rep(1, 5))$p))
})

test_that("simultaneous intervals hold together; the plain ones do not", {
  hits <- count_draws(9, function() {
    sets <- replicate(20, skewed_times(12), simplify = FALSE)
    together <- do.call(rbind, lapply(sets, order_interval, each_confidence(20)))
    plain <- do.call(rbind, lapply(sets, order_interval))
    c(all(together[, 1] <= 100 & together[, 2] >= 100), all(plain[, 1] <= 100 & plain[, 2] >= 100))
  })
  expect_exact(hits[1])
  expect_fails(hits[2])
})

test_that("Holm's steps err in any of many no more often than alpha", {
  wrong <- count_draws(10, function() {
    p <- replicate(10, signed_rank_p(log_ratios(skewed_times(12), skewed_times(12))))
    any(holm(c(p, NA)) <= ALPHA, na.rm = TRUE)
  })
  expect_level(wrong)
})

#' Launches in blocks: what a layout does to time is larger than what differs within it.
blocked_times <- function(blocks, each, layout = rnorm(blocks, 0, 0.05)) {
  100 * exp(rep(layout, each = each) + rnorm(blocks * each, 0, 0.02))
}

test_that("blocks: intervals over blocks hold; over launches, which ignore them, do not", {
  for (blocks in c(8, 22)) {
    block <- rep(seq_len(blocks), each = 5)
    hits <- count_draws(blocks, function() {
      x <- blocked_times(blocks, 5)
      c(covers(median_interval(x, block = block), 100), covers(median_interval(x), 100))
    })
    if (blocks < BCA_LAUNCHES) expect_exact(hits[1]) else expect_bootstrap(hits[1])
    expect_fails(hits[2])
  }
})

test_that("blocks: few of them are strata, and the interval is of these layouts", {
  layout <- c(-0.06, 0, 0.06)
  truth <- 100
  hits <- count_draws(31, function() {
    covers(median_interval(blocked_times(3, 5, layout), block = rep(1:3, each = 5)), truth)
  })
  expect_exact(hits)
})

test_that("parameters: a slope over blocks holds; over launches, which ignore them, does not", {
  rows <- expand.grid(launch = 1:3, env_bytes = 100 * 1:8, dose = c(0, 1, 2, 4))[-1]
  slope <- function(rows) c(slope = sum((rows$dose - 1.75) * rows$ns) / sum((rows$dose - 1.75)^2)) # the doses' mean is kept
  held <- function(...) {
    rows$ns <- 100 + (30 + rep(rnorm(8, 0, 3), each = 3)[rep(1:24, 4)]) * rows$dose + rnorm(96, 0, 2)
    covers(bootstrap_parameters(rows, slope, "dose", resamples = 199, ...), 30)
  }
  expect_bootstrap(count_draws(32, function() held()))
  expect_fails(count_draws(32, function() held(block = NULL), DRAWS / 4), DRAWS / 4)
})

#' Numbers of launches at which order statistics take the next rank, and hold just what they say.
order_looks <- function(most) {
  n <- seq(MIN_LAUNCHES, most)
  rank <- vapply(n, function(n) order_interval(seq_len(n))[1], 0)
  n[diff(c(0, rank)) > 0]
}

test_that("runs that stop when narrow: intervals hold at the corrected level, not at the plain one", {
  looks <- order_looks(65)
  ranks <- function(level) lapply(looks, function(n) order_interval(seq_len(n), level))
  stopped <- function(sorted, ranks) {
    for (i in seq_along(looks)) {
      bounds <- sorted[[i]][ranks[[i]]]
      if (isTRUE(bounds[2] / bounds[1] < 1.025)) break
    }
    bounds[1] <= 100 && 100 <= bounds[2]
  }
  corrected <- ranks(run_confidence(list(stopping = list(rule = "width", looks = length(looks)))))
  plain <- ranks(CONFIDENCE)
  hits <- count_draws(33, function() {
    times <- skewed_times(max(looks))
    sorted <- lapply(looks, function(n) sort.int(times[seq_len(n)], method = "quick"))
    c(stopped(sorted, corrected), stopped(sorted, plain))
  }, 10 * DRAWS)
  expect_exact(hits[1], 10 * DRAWS)
  expect_fails(hits[2], 10 * DRAWS)
})
