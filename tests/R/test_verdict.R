# Verdict rules, one by one, then over whole tables.

test_that("reproduced needs the published ratio inside and every condition met", {
  expect_equal(verdict_ratio(1.24, interval_of(1.22, 1.15, 1.30))$verdict, "reproduced")
  expect_equal(verdict_ratio(1.24, interval_of(1.50, 1.40, 1.60))$verdict, "direction only")
})

test_that("any differing condition caps the verdict at direction only", {
  for (condition in c("oversubscribed: 64 threads on 2 CPUs", "reduced: 200,000 cycles", "mimalloc 2.0.9 instead of 2.1.2")) {
    verdict <- verdict_ratio(1.24, interval_of(1.24, 1.20, 1.28), condition)
    expect_equal(verdict$verdict, "direction only")
    expect_match(verdict$note, condition, fixed = TRUE)
  }
})

test_that("the other direction, an excluded size, and missing data have their own words", {
  tie <- verdict_ratio(1.24, interval_of(1.1, 0.95, 1.2))
  expect_equal(tie$verdict, "not reproduced")
  expect_match(tie$note, "no direction is shown, and the interval excludes the published size")
  expect_match(verdict_ratio(1.24, interval_of(0.8, 0.7, 0.9))$note, "opposite direction")
  expect_match(verdict_ratio(0.6, interval_of(1.8, 1.7, 1.9))$note, "opposite direction")
  expect_equal(verdict_ratio(1.24, interval_of(1.2, NA, NA, 4))$verdict, "not yet measured")
  expect_equal(verdict_ratio(1.24, NULL)$verdict, "not yet measured")
  unmeasured <- verdict_ratio(1.24, median_interval(numeric()), unmeasured = "no counters")
  expect_equal(unmeasured$verdict, "not testable here")
  expect_equal(unmeasured$note, "no counters")
})

test_that("an interval that holds both no effect and the published one decides nothing, in either direction", {
  both <- list(verdict_ratio(0.962, interval_of(1.12, 0.57, 1.74)), verdict_ratio(1.24, interval_of(1.1, 0.95, 1.3)),
               verdict_ratio(0.5, interval_of(0.5, 0.5, 1)), verdict_ratio(-31.3, interval_of(-20, -40, 5), neutral = 0))
  for (answer in both) {
    expect_equal(answer$verdict, "open")
    expect_match(answer$note, "^the interval holds both no effect and the published one; more launches would tell$")
  }
  expect_match(verdict_ratio(0.962, interval_of(1.12, 0.57, 1.74), "reduced: 1 s of load")$note, "; reduced: 1 s of load$")
})

test_that("one rule for every kind: open exactly where the interval reaches beyond the region and does not leave it", {
  # Bounds at, beside and on both sides of the edge, which is 1 (0 for an order); a region above it and one below.
  word <- function(low, high) {
    i <- interval_of((low + high) / 2, low, high)
    o <- interval_of(i$value - 1, low - 1, high - 1)
    c(ratio = verdict_ratio(1.5, i)$verdict, difference = verdict_ratio(0.5, o, neutral = 0)$verdict,
      order = verdict_order("up", o)$verdict, bound = verdict_bound(1, "least", i)$verdict,
      equivalence = verdict_equivalence(1, interval_of(i$value / 2, low / 2, high / 2))$verdict,
      decision = verdict_decision(0.1, 0.05, 0, i)$verdict)
  }
  all_of <- function(word) rep(word, 6)
  expect_equal(unname(word(1.2, 1.8)), all_of("reproduced"))
  expect_equal(unname(word(0.6, 0.9)), all_of("not reproduced"))
  expect_equal(unname(word(0.6, 1.6)), all_of("open"))
  # An effect at the very edge is none; a bound or a margin is met there, and so is a time that is the same no gain.
  expect_equal(word(1, 1.8)[c("ratio", "order", "bound", "equivalence", "decision")],
               c(ratio = "open", order = "open", bound = "reproduced", equivalence = "reproduced", decision = "reproduced"))
  expect_equal(word(0.6, 1)[c("ratio", "order", "bound", "equivalence", "decision")],
               c(ratio = "not reproduced", order = "not reproduced", bound = "open", equivalence = "open", decision = "open"))
  # Where a size is asserted, a tie that excludes it refutes; an order asserts none.
  expect_equal(word(0.9, 1.1)[c("ratio", "difference", "order")],
               c(ratio = "not reproduced", difference = "not reproduced", order = "open"))
})

test_that("open is weaker than what holds, stronger than what was not measured, and not final", {
  expect_equal(weakest_verdict(c("reproduced", "open", "direction only")), "open")
  expect_equal(weakest_verdict(c("open", "not reproduced")), "not reproduced")
  expect_equal(weakest_verdict(c("open", "not yet measured")), "not yet measured")
})

claims <- read_claims(file.path(suite, "paper"))

#' churn rows at 64 threads under the published conditions; `ratio` is mimalloc's throughput over jemalloc's. With several
#' live sets the others also have other lifetimes and another touch: all three that the verdict is sensitive to vary.
published_like <- function(ratio = 1.236, cpus = 64, ops = 1e7, versions = c("5.3.0", "2.1.2"), live = 1000, reps = 8) {
  rows <- list()
  for (blocks in live) for (rep in seq_len(reps)) for (k in 1:2) {
    row <- synthetic_common(run_columns(), "paper", "churn", c("jemalloc", "mimalloc")[k], 64, cpus, rep, size_min = 16,
                            size_max = 65536, size_dist = "loguniform", live_blocks = blocks,
                            lifetime_dist = if (blocks == live[1]) "random" else "fifo",
                            touch = if (blocks == live[1]) "line" else "page")
    row$allocator_version <- versions[k]
    row <- synthetic_timed(row, 50 / (if (k == 2) ratio * (1 + 0.004 * (rep - 4.5)) else 1), ops)
    rows <- c(rows, list(row))
  }
  rows
}

#' The throughput claim's verdict on such rows.
throughput_verdict <- function(...) {
  results <- read_rows(local_folder(), published_like(...), "paper")
  compare_published(results, claims)$verdicts[1, ]
}

test_that("the full conditions with several live sets can reproduce", {
  verdict <- throughput_verdict(live = c(300, 1000))
  expect_equal(verdict$verdict, "reproduced")
  expect_equal(verdict$value, 1.236, tolerance = 0.01)
})

test_that("one live set alone is never reproduced and says that sensitivity was not measured", {
  verdict <- throughput_verdict()
  expect_equal(verdict$verdict, "direction only")
  expect_match(verdict$note, "sensitivity to live set, lifetimes and touching was not measured")
})

test_that("a live set that varies alone is not enough to reproduce", {
  rows <- lapply(published_like(live = c(300, 1000)), function(row) {
    row$lifetime_dist <- "random"
    row$touch <- "line"
    row
  })
  verdict <- compare_published(read_rows(local_folder(), rows, "paper"), claims)$verdicts[1, ]
  expect_equal(verdict$verdict, "direction only")
  expect_match(verdict$note, "sensitivity to lifetimes and touching was not measured")
})

test_that("threads that hardly overlap are said to", {
  expect_match(throughput_verdict(cpus = 2, ops = 2e5, live = c(300, 1000))$note, "largely one thread after another")
})

test_that("oversubscribed or reduced rows are never reproduced", {
  for (cpus in c(2, 63)) {
    verdict <- throughput_verdict(cpus = cpus, live = c(300, 1000))
    expect_equal(verdict$verdict, "direction only")
    expect_match(verdict$note, "oversubscribed")
  }
  reduced <- throughput_verdict(ops = 2e5, live = c(300, 1000))
  expect_equal(reduced$verdict, "direction only")
  expect_match(reduced$note, "reduced: 200,000 cycles")
})

test_that("another version is a condition, a build suffix is not", {
  expect_match(throughput_verdict(versions = c("5.3.0", "2.0.9"), live = c(1, 2))$note, "mimalloc 2.0.9 instead of 2.1.2")
  expect_equal(throughput_verdict(versions = c("5.3.0-0-g54eaed1d", "2.1.2"), live = c(1, 2))$verdict, "reproduced")
})

test_that("the weakest verdict over live sets stands", {
  results <- read_rows(local_folder(), c(published_like(live = 300), published_like(ratio = 0.9, live = 1000)), "paper")
  verdict <- compare_published(results, claims)$verdicts[1, ]
  expect_equal(verdict$verdict, "not reproduced")
  expect_match(verdict$note, "depends on reading and setting")
})

test_that("a metric that is empty on ok rows is not testable here, with the rows' own reason", {
  results <- read_rows(local_folder(), published_like(), "paper")
  verdicts <- compare_published(results, claims)$verdicts
  expect_equal(verdicts$verdict[verdicts$claim == "paper.l3"], "not testable here")
  expect_match(verdicts$note[verdicts$claim == "paper.l3"], "no hardware counters")
})

test_that("a fixed total divided among threads is told from the same number per thread", {
  results <- read_rows(local_folder(), c(published_like(ops = 12500), published_like(ops = 1562)), "paper")
  cells <- compare_published(results, claims)$cells
  expect_equal(vapply(cells, `[[`, "", "reading"), c("thread", "total"))
})

test_that("failed rows alone are not yet measured", {
  rows <- lapply(published_like(), function(row) {
    row$status <- "oom"
    row
  })
  results <- read_rows(local_folder(), rows, "paper")
  expect_equal(compare_published(results, claims)$verdicts$verdict, rep("not yet measured", 4))
})

test_that("every verdict is in the vocabulary", {
  expect_true(all(names(VERDICT_STRENGTH) %in% VERDICTS))
  expect_setequal(c(MEASURED_VERDICTS, WAITING_VERDICTS, "contradicted by its own numbers"), VERDICTS)
})
