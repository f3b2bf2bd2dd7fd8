# Intervals: none below six launches, coverage near what they claim, the same output for the same input.

test_that("no interval below six launches, one from six on", {
  for (n in 0:5) {
    interval <- median_interval(seq_len(n) + 0.5)
    expect_true(is.na(interval$low) && is.na(interval$high))
    expect_equal(interval$launches, n)
  }
  expect_true(is.finite(median_interval(1:6)$low))
  expect_equal(interval_tex(median_interval(1:5)), "(n$<$6)")
  expect_true(is.na(paired_ratio(1:5, 2:6)$low))
  expect_true(is.na(combined_interval(list(1:5, 1:20), function(g) g[[1]] + g[[2]])$low))
})

test_that("the method follows the number of launches", {
  expect_equal(median_interval(1:6)$method, "order statistics")
  expect_equal(median_interval(1:19)$method, "order statistics")
  expect_equal(median_interval(1:20)$method, "BCa")
})

test_that("order-statistic intervals are the binomial ones", {
  expect_equal(order_interval(1:6), c(1, 6))
  expect_equal(order_interval(1:9), c(2, 8))
  expect_equal(order_interval(1:12), c(3, 10))
})

test_that("BCa agrees with the boot package", {
  skip_if_not_installed("boot")
  x <- with_seed(3, rexp(40))
  set.seed(1)
  reference <- boot::boot.ci(boot::boot(x, function(d, i) stats::median(d[i]), 4000), type = "bca")$bca[4:5]
  ours <- bca_interval(x)
  expect_lt(max(abs(ours - reference)), 0.15 * diff(reference))
})

test_that("a seeded bootstrap gives the same numbers and leaves the random state alone", {
  x <- with_seed(5, rnorm(30))
  set.seed(9)
  before <- .Random.seed
  first <- median_interval(x)
  expect_identical(.Random.seed, before)
  rm(list = ls(boot_cache), envir = boot_cache)
  expect_identical(median_interval(x), first)
})

test_that("paired ratios use pairs and drop what is not measured", {
  a <- c(2, 4, 8, 16, 32, 64, NA)
  b <- c(1, 2, 4, 8, 16, 32, 1)
  ratio <- paired_ratio(a, b)
  expect_equal(c(ratio$value, ratio$low, ratio$high, ratio$launches), c(2, 2, 2, 6))
})

test_that("pairs share repetition and cell", {
  a <- as.data.frame(plain_row())[c(1, 1, 1), ]
  a$rep <- 1:3
  b <- a[c(3, 1), ]
  b$touch <- c("", "all")
  a$params <- b$params <- ""
  pairs <- pair_rows(a, b, c("threads", CELL_COLUMNS))
  expect_equal(unname(unlist(pairs)), c(3, 1))
})

test_that("quantiles of a histogram need 100 samples beyond", {
  merged <- data.frame(lower_ns = 10:19, upper_ns = 11:20, count = 1000)
  expect_equal(hist_quantile(merged, c(0.5, 0.9)), c(15, 19))
  expect_equal(is.na(hist_quantile(merged, c(0.99, 0.995))), c(FALSE, TRUE))
  expect_true(is.na(hist_quantile(merged[0, ], 0.5)))
  twice <- merge_hist(rbind(merged, merged))
  expect_equal(sum(twice$count), 20000)
  expect_equal(nrow(twice), 10)
})

test_that("a quantile that no launch can give comes from merged launches, with an interval over launches", {
  dir <- local_folder()
  rows <- list()
  hist <- character()
  for (allocator in c("jemalloc", "mimalloc")) for (rep in 1:6) {
    row <- plain_row(allocator = allocator, rep = rep, row_id = paste0(allocator, rep))
    rows <- c(rows, list(row))
    tail <- if (allocator == "mimalloc") 200 + rep else 400 + 2 * rep
    hist <- c(hist, sprintf("%s,malloc,%.3f,%.3f,%d", row$row_id, c(49, tail - 1), c(50, tail), c(29900, 100)))
  }
  results <- read_rows(dir, rows, hist = hist)
  own <- results$runs[results$runs$allocator == "mimalloc", ]
  interval <- latency_interval(results, own, "lat_p999_ns")
  expect_equal(interval$method, "merged")
  expect_equal(interval$launches, 6)
  expect_true(interval$value >= 201 && interval$value <= 206)
  expect_true(interval$low <= interval$value && interval$high >= interval$value)
  expect_true(is.na(latency_interval(results, own[1:3, ], "lat_p9999_ns")$value))
  ratio <- claim_ratio(results, results$runs, "lat_p999_ns")
  expect_equal(ratio$value, 0.5)
  expect_equal(c(ratio$low, ratio$high), c(0.5, 0.5))
})
