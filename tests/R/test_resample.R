# What is drawn again, what counts as a block, and intervals of parameters: against the boot package and by hand.

launches_of <- function(...) data.frame(..., stringsAsFactors = FALSE)

test_that("blocks are columns that launches of a cell share", {
  rows <- launches_of(threads = rep(1:2, each = 8), seed = 1:16, env_bytes = rep(c(100, 200), 8))
  expect_equal(block_of(rows, "threads"), as.character(rows$env_bytes))
  rows$env_bytes <- 100
  expect_null(block_of(rows, "threads"))                       # a seed a launch makes launches, not blocks
  rows$env_bytes <- rep(c(100, 200), each = 8)
  expect_null(block_of(rows, "threads"))                       # differs between cells only
  rows$env_bytes <- NA
  expect_null(block_of(rows, "threads"))
  rows$seed <- rep(1:4, 4)
  expect_equal(block_of(rows, "threads"), as.character(rows$seed))
  expect_null(block_of(rows[0, ], "threads"))
})

test_that("what is drawn follows the number of blocks", {
  rows <- launches_of(cell = rep(1:2, each = 16), env_bytes = rep(1:8, 4))
  many <- resampling_design(rows, "cell")
  expect_equal(c(length(many$samples), lengths(many$samples), many$n), c(1, 8, 8))
  expect_equal(many$samples[[1]][[3]], c(3, 11, 19, 27))       # the block of all cells
  expect_equal(many$words, "of 8 blocks")
  drawn <- with_seed(1, draw_rows(many$samples))
  expect_equal(length(drawn), 32)
  expect_true(all(table(rows$env_bytes[drawn]) %% 4 == 0))
  rows$env_bytes <- rows$env_bytes + 100 * rows$cell           # blocks of their own in each cell
  expect_equal(lengths(resampling_design(rows, "cell")$samples), c(8, 8))
  few <- resampling_design(launches_of(cell = rep(1:2, each = 12), env_bytes = rep(1:3, 8)), "cell")
  expect_equal(lengths(few$samples), rep(4, 6))
  expect_equal(few$n, 12)
  expect_match(few$words, "within 3 blocks and for these only")
})

test_that("methods say how blocks were treated", {
  x <- c(1:20, 2:21)
  expect_equal(median_interval(x, block = rep(1:20, 2))$method, "BCa, of 20 blocks")
  expect_equal(median_interval(x, block = rep(1:8, 5))$method, "order statistics, of 8 blocks")
  expect_equal(median_interval(x, block = rep(1:8, 5))$launches, 8)
  expect_equal(median_interval(x, block = rep(1:2, 20))$method, "order statistics, within 2 blocks and for these only")
  expect_equal(median_interval(x, block = rep(1, 40))$method, "BCa")
  expect_equal(median_interval(x, block = 1:40), median_interval(x))
})

test_that("the jackknife leaves out one value after another", {
  x <- c(3, 1, 4, 1.5, 9, 2.6, 5)
  for (p in c(0.1, 0.5, 0.8)) {
    expect_equal(jackknife_quantile(x, p), vapply(seq_along(x), function(i) sample_quantile(sort(x)[-i], p), 0))
    expect_equal(sample_quantile(x, p), stats::quantile(x, p, type = 6, names = FALSE))
  }
})

test_that("an order of launches is no part of an interval", {
  x <- with_seed(2, rexp(25))
  expect_equal(median_interval(rev(x)), median_interval(x))
})

# With cells of one size: for others boot's acceleration leaves out the sizes that Davison and Hinkley's has.
test_that("parameters agree with the boot package: two cells, BCa", {
  skip_if_not_installed("boot")
  rows <- with_seed(8, launches_of(cell = rep(1:2, each = 24), ns = c(rexp(24), 3 * rexp(24))))
  ratio <- function(rows) c(ratio = mean(rows$ns[rows$cell == 2]) / mean(rows$ns[rows$cell == 1]))
  ours <- bootstrap_parameters(rows, ratio, "cell", resamples = 4000)
  expect_equal(ours$method, "BCa")
  set.seed(1)
  drawn <- boot::boot(rows, function(d, i) ratio(d[i, ]), 4000, strata = rows$cell)
  reference <- boot::boot.ci(drawn, type = "bca", L = boot::empinf(drawn, type = "jack"))$bca[4:5]
  expect_lt(max(abs(c(ours$low, ours$high) - reference)), 0.06 * diff(reference))
})

test_that("parameters: the same numbers every time, and the random state is left alone", {
  rows <- with_seed(3, launches_of(cell = rep(1:3, each = 8), ns = rexp(24)))
  means <- function(rows) c(mean = mean(rows$ns), sd = stats::sd(rows$ns))
  set.seed(9)
  before <- .Random.seed
  first <- bootstrap_parameters(rows, means, "cell", resamples = 1000)
  expect_identical(.Random.seed, before)
  expect_identical(bootstrap_parameters(rows, means, "cell", resamples = 1000), first)
  expect_equal(first$method, rep("expanded percentile", 2))
  expect_true(all(first$low < first$value & first$value < first$high))
  wider <- bootstrap_parameters(rows, means, "cell", resamples = 1000, confidence = 0.99)
  expect_true(all(wider$low <= first$low & wider$high >= first$high & wider$high - wider$low > first$high - first$low))
})

test_that("parameters: no interval below six, past the budget or where fits fail, and why", {
  rows <- with_seed(4, launches_of(ns = rexp(12)))
  mean_of <- function(rows) c(mean = mean(rows$ns))
  few <- bootstrap_parameters(rows[1:5, , drop = FALSE], mean_of)
  expect_true(is.finite(few$value) && is.na(few$low))
  expect_match(few$reason, "5 replicates in a cell, fewer than 6")
  late <- bootstrap_parameters(rows, mean_of, seconds = -1)
  expect_true(is.na(late$low))
  expect_match(late$reason, "took longer")
  # Every eleventh resample or so draws the largest launch three times.
  odd <- bootstrap_parameters(rows, function(rows) if (sum(rows$ns == max(rows$ns)) > 2) stop("no") else mean_of(rows))
  expect_true(is.na(odd$low))
  expect_match(odd$reason, "no fit in [0-9]+ % of the resamples")
})

test_that("percentile tails widen with fewer replicates, to the plain ones with many", {
  tails <- vapply(c(6, 12, 1e6), function(n) expanded_tails(n)[1], 0)
  expect_true(all(diff(tails) > 0))
  expect_equal(tails[3], 0.025, tolerance = 1e-4)
})

test_that("other levels and quantiles take as many launches as they need", {
  expect_equal(order_least(0.95), 6)
  expect_equal(order_least(each_confidence(20)), 10)
  expect_equal(order_least(each_confidence(100)), 12)
  expect_equal(order_least(0.95, 0.9), 36)
  expect_equal(median_interval(1:9, each_confidence(20))$method, "n<10")
  expect_equal(quantile_interval(1:35, 0.9)$method, "n<36")
  expect_equal(quantile_interval(1:36, 0.9)$method, "order statistics")
  # 2000 resamples have no bounds at such a level.
  expect_equal(median_interval(1:40, each_confidence(20))$method, "order statistics")
})

test_that("many at once: those measured share the risk, and the caption says so", {
  sets <- list(1:12, numeric(), 2:13, NA)
  out <- simultaneous_intervals(sets)
  expect_equal(out$together, rep(2, 4))
  expect_equal(is.na(out$value), c(FALSE, TRUE, FALSE, TRUE))
  expect_equal(c(out$low[1], out$high[1]), order_interval(1:12, 0.975))
  expect_equal(simultaneous_text(1), "95 % interval")
  expect_match(simultaneous_text(20), "all 20 intervals together hold with 95 %, each is at 99.75 %")
})

test_that("a run that stopped by width has intervals at the level of its looks", {
  expect_equal(run_confidence(list()), 0.95)
  expect_equal(run_confidence(list(stopping = list(rule = "width", width = 0.05, looks = 10))), 0.995)
  expect_equal(run_confidence(list(stopping = list(rule = "width", looks = 10, confidence = 0.999))), 0.999)
  expect_equal(run_confidence(list(stopping = list(rule = "width", looks = 10, confidence = 0.95))), 0.995)
  rows <- lapply(1:12, function(rep) plain_row(rep = rep, ops_per_s = rep))
  dir <- local_folder()
  results <- read_rows(dir, rows)
  expect_equal(group_intervals(results$runs, "allocator", "ops_per_s")[c("low", "high")], data.frame(low = 3, high = 10))
  meta <- c(read_meta(file.path(dir, "s")), list(stopping = list(rule = "width", looks = 10)))
  jsonlite::write_json(meta, file.path(dir, "s", "meta.json"), auto_unbox = TRUE)
  stopped <- group_intervals(read_results(dir, contract)$runs, "allocator", "ops_per_s")
  expect_equal(stopped[c("low", "high")], data.frame(low = 1, high = 12))
})
