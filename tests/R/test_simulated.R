# What the simulated machine's rows become: intervals by allocator and pair, tables, figures and sentences.

registry <- function() read_registry(file.path(suite, "allocators", "registry.ini"))
claims <- read_claims(file.path(suite, "paper"))

#' A churn row with counts an operation; id tells rows apart.
sim_row <- function(id, allocator, rep, each, threads = 64, ...) {
  synthetic_simulated(run_columns(), id, "coherence", "churn", allocator, threads, rep, each, touch = "page",
                      live_blocks = 100, ...)
}

write_parts <- function(parts, name = "coherence") {
  dir <- local_folder(parent.frame())
  parts <- synthetic_parts(parts)
  read_rows(dir, parts$rows, name, metrics = parts$metrics)
}

#' Six launches each of jemalloc and mimalloc, mimalloc with `factor` times the misses; no false sharing in mimalloc.
pair_parts <- function(factor = 0.5, n = 6, ...) {
  unlist(lapply(seq_len(n), function(rep) {
    list(sim_row(sprintf("j%d", rep), "jemalloc", rep, c(l3_miss = 2 + rep / 10, sim_false_sharing = 3), ...),
         sim_row(sprintf("m%d", rep), "mimalloc", rep, c(l3_miss = factor * (2 + rep / 10), sim_false_sharing = 0), ...))
  }), recursive = FALSE)
}

test_that("a pair of allocators gives the paired ratio, its launches by name, and the machine", {
  results <- write_parts(pair_parts())
  ratio <- simulated_interval(results, "l3_miss_per_op", c("mimalloc", "jemalloc"))
  expect_equal(c(ratio$value, ratio$low, ratio$high), c(0.5, 0.5, 0.5), tolerance = 1e-3)
  expect_equal(ratio$launches, 6)
  expect_setequal(ratio$row_ids, c(paste0("m", 1:6), paste0("j", 1:6)))
  expect_equal(ratio$machine, "big-4x16")
  expect_true(is.na(ratio$reason))
})

test_that("one allocator gives its median; 0 is a count, and no ratio is made of it", {
  results <- write_parts(pair_parts())
  none <- simulated_interval(results, "sim_false_sharing_per_op", "mimalloc")
  expect_equal(c(none$value, none$low, none$high), c(0, 0, 0))
  expect_setequal(none$row_ids, paste0("m", 1:6))
  ratio <- simulated_interval(results, "sim_false_sharing_per_op", c("mimalloc", "jemalloc"))
  expect_equal(ratio$launches, 0L)
  expect_length(ratio$row_ids, 0)
  expect_match(ratio$reason, "both counted some")
})

test_that("failed rows, other threads and other settings stay out; too few launches have no interval", {
  parts <- c(pair_parts(n = 2), list(sim_row("x1", "mimalloc", 3, c(l3_miss = 900), status = "timeout"),
                                     sim_row("x2", "mimalloc", 3, c(l3_miss = 900), threads = 8)))
  results <- write_parts(parts)
  one <- simulated_interval(results, "l3_miss_per_op", "mimalloc")
  expect_setequal(one$row_ids, c("m1", "m2"))
  expect_true(is.na(one$low))
  expect_equal(simulated_interval(results, "l3_miss_per_op", "mimalloc", threads = 8)$row_ids, "x2")
  empty <- simulated_interval(results, "l3_miss_per_op", "mimalloc", held = list(touch = "none"))
  expect_equal(empty$launches, 0L)
  expect_match(empty$reason, "no rows of the churn kernel on the simulated machine")
  expect_match(simulated_interval(results, "sim_cycles_per_op", "mimalloc")$reason, "sim_cycles_per_op is empty")
  expect_match(simulated_interval(results, "sim_ops_per_s", "mimalloc", mode = "timed")$reason, "no rows")
})

test_that("simulated rows are among none that were measured, and the machine's rows among none that were simulated", {
  results <- write_parts(pair_parts())
  expect_equal(nrow(results$runs), 0)
  dir <- local_folder()
  expect_equal(nrow(simulated_rows(read_rows(dir, list(plain_row())), "churn")), 0)
})

test_that("the table has every thread count, the figure the largest, and both say what was reduced", {
  results <- write_parts(c(pair_parts(), list(sim_row("x1", "jemalloc", 1, c(l3_miss = 7), threads = 8))))
  table <- table_coherence(results, registry())
  lines <- grep("malloc", table$lines, value = TRUE)
  expect_match(lines[1], "churn & 8 & jemalloc & 7.00 {\\footnotesize (n$<$6)}", fixed = TRUE)
  expect_match(lines[3], "churn & 64 & mimalloc & 1.17 .*& 0 .*footnotesize .0, 0...*& 6 ")
  figure <- figure_coherence(results, registry())
  for (caption in list(table$caption, figure$caption)) {
    expect_match(paste(caption, collapse = " "), "simulated machine big-4x16; operations a thread: 100; live blocks.*: 100\\.")
  }
  expect_equal(as.numeric(strsplit(figure$files[["coherence.dat"]][1], " ")[[1]][2]), 2.35, tolerance = 0.01)
  expect_length(grep("coherence-labels", names(figure$files)), 4)
  said <- coherence_macros(results, claims, registry())[["sayCoherence"]]
  expect_match(said, paste("most false sharing is that of jemalloc (3.00 [3.00, 3.00] an operation);",
                           "the least is that of mimalloc (0 [0, 0]"), fixed = TRUE)
})

test_that("the published L3 ratio stands beside the simulated one with its conditions", {
  parts <- lapply(pair_parts(), function(part) {
    part$row$l3_miss_ratio <- if (part$row$allocator == "mimalloc") "0.300" else "0.600"
    part
  })
  said <- coherence_macros(write_parts(parts), claims, registry())[["sayCoherence"]]
  expect_match(said, "is 0.500 [0.500, 0.500] there (n = 6 pairs of launches), as published 0.618", fixed = TRUE)
  expect_match(said, "a model of caches and 100 operations a thread are other conditions", fixed = TRUE)
})

test_that("a change with the quantum is one of medians, and none is made where the default counted nothing", {
  parts <- synthetic_quantum(run_columns(), "quantum", "weave", 1000, 6)
  dir <- local_folder()
  results <- read_rows(dir, parts$rows, "quantum", metrics = parts$metrics)
  own <- quantum_cells(results, "weave")$cells[[1]]
  change <- quantum_change(own, "sim_true_sharing_per_op", 500, 1000)
  expect_equal(unlist(change[c("value", "low", "high")]), rep(1 / 9, 3), tolerance = 0.01, check.attributes = FALSE)
  expect_equal(change$launches, 6)
  own$sim_true_sharing_per_op[own$sim_quantum == 1000][1] <- 0
  expect_equal(quantum_change(own, "sim_true_sharing_per_op", 500, 1000)$launches, 0L)
  table <- table_quantum(results, registry(), "weave")
  expect_length(grep("^~ & ~ & ~ & (500|2000) ", table$lines), 4)
  expect_match(paste(table$caption, collapse = " "), "At 1,000, the default: .* Over n = 6 launches a line")
  expect_match(table_quantum(results, registry(), "timed")$reason, "no rows of the simulated machine in timed mode")
  expect_match(quantum_macros(results, registry())[["sayQuantum"]],
               "16 changes, [0-9]+ of them told from zero; the largest is .*not measured here")
})

test_that("cells of one quantum are no answer to what it changes", {
  results <- write_parts(pair_parts(), "quantum")
  expect_match(table_quantum(results, registry(), "weave")$reason, "one quantum only in weave mode")
})

test_that("signed changes print with their sign, and without an interval where launches are few", {
  expect_equal(change_cell(data.frame(value = -0.021, low = -0.03, high = 0.001)),
               "$-$2.1\\,\\% {\\footnotesize [$-$3.0, +0.1]}")
  expect_match(change_cell(data.frame(value = 0.5, low = NA, high = NA)), "+50.0\\,\\% {\\footnotesize (n$<$6)}", fixed = TRUE)
  expect_equal(change_cell(median_interval(numeric())), "")
})

test_that("simulated time is drawn from the metrics, with p99.9 where it is there and the deepest quantile else", {
  dir <- local_folder()
  parts <- synthetic_times(run_columns(), 6)
  results <- read_rows(dir, parts$rows, "timed", metrics = parts$metrics)
  figure <- figure_timed(results, registry())
  expect_match(figure$files[["timed-labels-2.gp"]], "p99.9 of a malloc", all = FALSE)
  expect_match(paste(figure$caption, collapse = " "),
               "Shown: throughput and p99.9 of a malloc\\. .*2.00 ns of a latency are .*n = 6 launches a point")
  first <- as.numeric(strsplit(figure$files[["timed.dat"]][1], " ")[[1]])
  expect_equal(first[2], 1e3 / SYNTHETIC_TRUTH$base[1], tolerance = 0.05)
  expect_match(timed_macros(results, registry())[["sayTimed"]],
               "^With 16 threads, each on a core, the highest .*Of the p99.9 of a malloc")
  less <- parts$metrics[!grepl("p999", parts$metrics)]
  dir <- local_folder()
  figure <- figure_timed(read_rows(dir, parts$rows, "timed", metrics = less), registry())
  expect_match(figure$files[["timed-labels-2.gp"]], "p99 of a malloc", all = FALSE)
  expect_match(paste(figure$caption, collapse = " "),
               "Shown: throughput and p99 of a malloc\\. .*Too few calls for a deeper quantile")
  expect_false(grepl("tail", FIGURE_TITLES[["timed"]]))
  dir <- local_folder()
  none <- read_rows(dir, parts$rows, "timed", metrics = grep("param", less, value = TRUE))
  expect_match(figure_timed(none, registry())$reason, "no row of timed mode has a simulated throughput")
  expect_equal(timed_macros(none, registry())[["sayTimed"]], "Simulated time was not measured in these data.")
})

test_that("the prose counts the launches of the machine at hand and of the simulated one, and both are all", {
  dir <- local_folder()
  read_rows(dir, list(plain_row(), plain_row(row_id = "b", rep = 2)))
  parts <- synthetic_parts(pair_parts(n = 2))
  results <- read_rows(dir, parts$rows, "coherence", metrics = parts$metrics)
  said <- data_macros(results, claims)
  expect_match(said[["sayLaunches"]], "in 6 process launches (4 on a simulated machine), all of which", fixed = TRUE)
  expect_match(said[["sayMissing"]], "Of the 2 launches on the machine at hand that ended well", fixed = TRUE)
  expect_match(said[["sayMissing"]], "The other 4 launches that ended well were on the simulated machine.", fixed = TRUE)
})
