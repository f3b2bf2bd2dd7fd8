# The benchmark's verdicts: rules, pairs, the best rival, what was not measured.

targets <- data.frame(id = c("a", "b", "c"), limit = c(0.85, 0.9, 1), rule = c("at_most", "at_least", "at_most"))

test_that("a verdict needs the whole interval on one side of the limit", {
  expect_equal(verdict_of(interval_of(0.8, 0.7, 0.84), 0.85, "at_most"), "met")
  expect_equal(verdict_of(interval_of(0.85, 0.85, 0.85), 0.85, "at_most"), "met")
  expect_equal(verdict_of(interval_of(0.8, 0.7, 0.9), 0.85, "at_most"), "open: the interval holds the limit")
  expect_equal(verdict_of(interval_of(0.9, 0.8, 0.95), 0.85, "at_most"), "open: the interval holds the limit")
  expect_equal(verdict_of(interval_of(0.9, 0.88, 0.95), 0.85, "at_most"), "missed")
  expect_equal(verdict_of(interval_of(0.8, 0.7, 0.89), 0.9, "at_least"), "missed")
  expect_equal(verdict_of(interval_of(0.95, 0.9, 1), 0.9, "at_least"), "met")
  expect_equal(verdict_of(interval_of(0.95, 0.85, 1), 0.9, "at_least"), "open: the interval holds the limit")
  expect_error(verdict_of(interval_of(1, 1, 1), 1, "about"), "rule 'about'")
})

test_that("too few launches are open however far the value lies; a count is exact", {
  expect_equal(verdict_of(interval_of(0.1, NA, NA, 5), 0.85, "at_most"), "open: n < 6")
  expect_equal(verdict_of(interval_of(9, NA, NA, 1), 0.85, "at_most"), "open: n < 6")
  expect_equal(verdict_of(counted(56), 56, "at_most"), "met")
  expect_equal(verdict_of(counted(57), 56, "at_most"), "missed")
})

test_that("a tiny run has no verdicts, and keeps why something was not measured", {
  lines <- rbind(figure_line("a", "x", interval_of(0.1, 0.1, 0.1), "", targets),
                 figure_line("a", "x", no_interval(), "", targets, "no valgrind"))
  expect_equal(judged_by_form(lines, "tiny")$verdict, c("tiny: shows only that it works", "not measured: no valgrind"))
  expect_equal(judged_by_form(lines, "short")$verdict, c("met", "not measured: no valgrind"))
  expect_equal(judged_by_form(lines, NULL)$verdict, c("met", "not measured: no valgrind"))
})

test_that("the page counts open targets apart", {
  lines <- rbind(figure_line("a", "x", interval_of(0.1, 0.1, 0.1), "", targets),
                 figure_line("a", "x", interval_of(0.8, 0.7, 0.9), "", targets),
                 figure_line("b", "x", interval_of(0.5, NA, NA, 2), "", targets),
                 figure_line("c", "x", no_interval(), "", targets))
  expect_match(bench_page(lines, NULL, NULL, "tlfl", local_folder())[1],
               "^Of 4 targets 1 are met, 0 missed, 2 open, 1 not measured[.]")
})

test_that("what was not measured is empty, with the reason, and without the machine's folders", {
  line <- figure_line("a", "x", no_interval(), "", targets, "skipped: /home/me/lib/libx.so cannot be loaded")
  expect_true(is.na(line$value))
  expect_equal(line$verdict, "not measured: skipped: libx.so cannot be loaded")
  expect_equal(figure_line("none", "x", interval_of(1, 1, 1), "", targets)$verdict, "")
})

#' Rows of a sweep: CPU time an op by kernel and allocator, over launches with common noise.
bench_rows <- function(costs, launches = 8) {
  rows <- list()
  for (kernel in rownames(costs)) for (allocator in colnames(costs)) for (rep in seq_len(launches)) {
    noise <- 1 + (rep %% 3) / 10
    rows <- c(rows, list(plain_row(kernel = kernel, allocator = allocator, rep = rep, ops = 1000, threads = 1,
                                   cpu_user_ns = round(1000 * costs[kernel, allocator] * noise), cpu_sys_ns = 0,
                                   rss_baseline_bytes = 0, rss_peak_bytes = 1000 * costs[kernel, allocator])))
  }
  rows
}

costs <- matrix(c(50, 100, 100, 100, 50, 200), 2, dimnames = list(c("churn", "fastpath"), c("tlfl", "glibc", "jemalloc")))

test_that("the mean over kernels is paired, and the best rival is the one with the least of all", {
  read <- read_rows(local_folder(), bench_rows(costs), "cpu")$runs
  rows <- with_costs(read)
  glibc <- geometric_mean(cell_ratios(rows, "tlfl", "glibc", "cpu_per_op"))
  expect_equal(glibc$value, sqrt(0.5 * 1), tolerance = 1e-3)
  expect_lt(glibc$high - glibc$low, 0.01) # the noise is common to both, and goes
  best <- best_rival(rows, "tlfl", c("glibc", "jemalloc"), "cpu_per_op")
  expect_equal(best$rival, "glibc")
  lines <- bench_cpu(read, "tlfl", data.frame(id = c("cpu", "cpu.kernel"), limit = c(0.85, 1.1), rule = "at_most"))
  expect_equal(lines$verdict[lines$id == "cpu"], "met")
  expect_match(lines$figure[lines$id == "cpu.churn"], "jemalloc")
  expect_equal(lines$value[lines$id == "cpu.churn"], 1, tolerance = 1e-3)
  expect_true(all(c("rss.jemalloc", "rss.glibc") %in% lines$id))
})

test_that("newer releases are no rivals of the main target, tlfl's variants and bump are none at all", {
  rows <- data.frame(allocator = c("glibc", "mimalloc-sid", "mimalloc-sid-nothp", "tlfl", "tlfl-locked", "bump"))
  expect_equal(rivals_of(rows), "glibc")
  expect_equal(rivals_of(rows, peers = TRUE), c("mimalloc-sid", "mimalloc-sid-nothp"))
})

test_that("counts are differences of two loops, and a cliff is a size above twice its half", {
  size <- c(8, 16, 32, 64, 128, 256, 512, 1024)
  rows <- data.frame(allocator = "tlfl", loop = "pair", size = size, live = 1, ops = 100, instructions_1 = 1100,
                     instructions_2 = 1100 + 100 * c(50, 50, 50, 50, 150, 150, 150, 150), syscalls_2 = 0, faults_2 = 2,
                     reason = NA)
  counts <- pair_counts(rows)
  expect_equal(counts$instructions[1], 50)
  expect_equal(counts$faults[1], 0.01)
  expect_equal(size_steps(counts)[1, "size"], 128)
  expect_equal(size_steps(counts)[1, "ratio"], 3)
})
