# Models of contention: their formulae against one another, coefficients from synthetic launches, and the choice among them.

COUNTS <- c(1, 2, 4, 8, 16, 32, 64)
TRUTH <- list(none = 80, queue = c(200, 15), usl = c(8, 0.05, 0.001), handover = c(300, 10, 15), ticket = c(300, 15, 0.8))

#' Launches of a model with noise, skewed: what disturbs a launch makes it longer.
contended_rows <- function(model, launches = 20, noise = 0.03, counts = COUNTS) {
  time <- CONTENTION_MODELS[[model]]$time(TRUTH[[model]], counts)
  rows <- data.frame(threads = rep(counts, each = launches))
  rows$ns_per_op <- rep(time, each = launches) * skewed(nrow(rows), noise)
  rows
}

#' Factors with median 1.
skewed <- function(n, noise) exp(noise * (rexp(n) - log(2)))

test_that("mean value analysis and the chain of states give one closed queue", {
  expect_equal(queue_time(100, 20, COUNTS), load_queue_time(100, rep(20, 64), COUNTS))
  expect_equal(queue_time(0.001, 20, 5), load_queue_time(0.001, rep(20, 5), 5))
})

test_that("a closed queue is bounded as queues are", {
  time <- queue_time(200, 15, COUNTS)
  expect_equal(time[1], 215)
  expect_true(all(time >= pmax(215, 15 * COUNTS)))
  expect_equal(time[7], 15 * 64, tolerance = 1e-4)
  # By hand: with two threads the second finds the first there for the share 15 / 215 of its cycle.
  expect_equal(queue_time(200, 15, 2), 200 + 15 * (1 + 15 / 215))
})

test_that("hand-over costs nothing to one thread and, where all wait, adds to every hand-over", {
  expect_equal(handover_time(c(300, 10, 15), 1), 310)
  expect_equal(ticket_time(c(300, 15, 0.8), 1), 315)
  expect_equal(handover_time(c(0.01, 10, 15), 64), 64 * 25, tolerance = 1e-3)
  expect_equal(ticket_time(c(0.01, 15, 0.8), 64), 64 * (15 + 0.8 * 63), tolerance = 1e-3)
})

test_that("the chain neither overflows nor loses its ends", {
  for (think in c(1e-6, 1, 1e6)) expect_true(all(is.finite(load_queue_time(think, 10 + 5 * (1:256), c(1, 2, 128, 256)))))
})

test_that("exact data give the coefficients back", {
  skip_if_not_installed("minpack.lm")
  for (model in names(TRUTH)) {
    time <- CONTENTION_MODELS[[model]]$time(TRUTH[[model]], COUNTS)
    fit <- fit_contention(list(n = COUNTS, time = time), model)
    expect_equal(unname(fit$parameters), TRUTH[[model]], tolerance = 0.002, info = model)
    expect_equal(fit$reason, "", info = model)
    expect_equal(predict_contention(fit, 48), CONTENTION_MODELS[[model]]$time(TRUTH[[model]], 48), tolerance = 0.002)
  }
})

test_that("coefficients are never negative", {
  skip_if_not_installed("minpack.lm")
  time <- 100 / (1 + 0.1 * log2(COUNTS)) # faster with more threads
  for (model in names(TRUTH)) expect_true(all(fit_contention(list(n = COUNTS, time = time), model)$parameters >= 0))
})

test_that("medians by thread count are the medians", {
  rows <- data.frame(threads = c(4, 1, 1, 4, 1, 4, 2), ns_per_op = c(9, 3, 1, 7, 2, NA, 5))
  expect_equal(contention_medians(rows), list(n = c(1, 2, 4), time = c(2, 5, 8), launches = c(3, 1, 2)))
})

test_that("what the data cannot tell apart has a reason and no number", {
  skip_if_not_installed("minpack.lm")
  rows <- with_seed(1, contended_rows("queue", 6, counts = 1))
  for (model in c("queue", "usl", "ticket")) {
    out <- contention_intervals(rows, model, resamples = 50)
    expect_true(all(is.na(out[c("value", "low", "high")])))
    expect_match(out$reason, "^not identifiable here: 1 thread count for", all = TRUE)
  }
  # A lock that is always wanted: with no one ever outside, time outside and a free lock's time do not show.
  busy <- fit_contention(list(n = c(16, 32, 64), time = handover_time(c(1, 10, 15), c(16, 32, 64))), "handover")
  expect_match(busy$reason, "^not identifiable here: ")
})

test_that("the model that made the data is chosen, and a flat curve needs none", {
  skip_if_not_installed("minpack.lm")
  for (model in c("none", "queue", "usl", "ticket")) {
    choice <- with_seed(3, choose_contention(contended_rows(model)))
    expect_equal(choice$model[choice$chosen], model)
  }
})

test_that("the choice is by thread counts left out, not by the fit", {
  skip_if_not_installed("minpack.lm")
  choice <- with_seed(4, choose_contention(contended_rows("queue", counts = COUNTS[1:5])))
  expect_lt(min(choice$rms_in), choice$rms_in[choice$chosen])
  expect_true(all(choice$rms > choice$rms_in))
  few <- with_seed(4, choose_contention(contended_rows("queue", counts = c(1, 2))))
  expect_match(few$reason[few$model != "none"], "leaving one out takes")
})

#' How often intervals of a model's parameters and of a prediction hold what the launches were made with. Few resamples, which
#' widen no interval: a test of many draws takes many fits.
parameters_held <- function(model, draws, counts, launches = 12) {
  truth <- c(TRUTH[[model]], CONTENTION_MODELS[[model]]$time(TRUTH[[model]], 24))
  count_draws(41, function() {
    covers(contention_intervals(contended_rows(model, launches, counts = counts), model, 24, resamples = 79), truth)
  }, draws)
}

test_that("coefficients of the scalability law and a prediction are recovered: 95 % intervals hold", {
  skip_if_not_installed("minpack.lm")
  expect_bootstrap(parameters_held("usl", DRAWS, COUNTS))
})

test_that("coefficients of queues and a prediction are recovered: 95 % intervals hold", {
  skip_if_not_installed("minpack.lm")
  for (model in c("queue", "ticket")) {
    expect_bootstrap(parameters_held(model, DRAWS / 5, COUNTS[1:6]), DRAWS / 5)
  }
})
