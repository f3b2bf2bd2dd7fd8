# The benchmark of the simulated machine: costs beside cachegrind's of the same round, and what was not measured.

simulator_rows <- function(rounds) {
  cells <- expand.grid(round = seq_len(rounds), what = c("cachegrind", "weave", "timed"), threads = c(8, 64),
                       stringsAsFactors = FALSE)
  cost <- c(cachegrind = 1, weave = 1.5, timed = 4)[cells$what]
  noise <- cells$round # of the round, so that only pairs are right
  cells$wall_ns <- 1e9 * noise * cost * ifelse(cells$threads == 64, ifelse(cells$what == "weave", 6, 3), 1)
  cells$cpu_ns <- 2 * cells$wall_ns
  cells$rss_kib <- 1024 * cells$threads
  cells
}
simulator_targets <- data.frame(id = c("wall.weave.8", "wall.growth"), limit = c(1.4, 2.5), rule = "at_most")

test_that("ratios are paired by round, and growth is beside cachegrind's", {
  figures <- simulator_figures(simulator_rows(6), simulator_targets)
  value <- function(id) figures$value[figures$id == id]
  expect_equal(value("wall.weave.8"), 1.5)
  expect_equal(value("wall.weave.64"), 3)
  expect_equal(value("cpu.timed.64"), 4)
  expect_equal(value("wall.growth"), 2)
  expect_equal(value("memory.weave.64"), 64)
  expect_equal(figures$verdict[figures$id == "wall.weave.8"], "missed")
  expect_equal(figures$verdict[figures$id == "wall.growth"], "met")
})

test_that("without rows there is no figure, and with few no interval", {
  figures <- simulator_figures(simulator_rows(6)[0, ], simulator_targets)
  expect_true(all(is.na(figures$value)))
  expect_true(all(grepl("^not measured", figures$verdict)))
  few <- simulator_figures(simulator_rows(2), simulator_targets)
  expect_equal(few$verdict[few$id == "wall.growth"], "open: n < 6")
})
