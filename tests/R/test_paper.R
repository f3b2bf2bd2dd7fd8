# The paper script and what the generated text says: refusals, captions and sentences for full, few and missing data.

#' paper.sh on a root, with an ak that answers as told.
run_paper <- function(root, ak_says = NULL) {
  dir <- local_folder()
  ak <- "none"
  if (!is.null(ak_says)) {
    ak <- file.path(dir, "ak")
    writeLines(c("#!/bin/sh", paste("echo", shQuote(ak_says)), "exit 1"), ak)
    Sys.chmod(ak, "755")
  }
  said <- suppressWarnings(system2("sh", shQuote(c(file.path(suite, "analysis", "paper.sh"), root, dir)),
                                   stdout = TRUE, stderr = TRUE, env = paste0("AK=", shQuote(ak))))
  list(status = attr(said, "status"), said = said)
}

test_that("results that do not exist are refused with one line that says what to do", {
  ran <- run_paper("/nowhere/results")
  expect_equal(ran$status, 2L)
  expect_length(ran$said, 1)
  expect_match(ran$said, "make reproduce.*RESULTS=")
})

test_that("a folder that ak verify rejects is refused with one line", {
  dir <- local_folder()
  read_rows(dir, list(plain_row()))
  ran <- run_paper(dir, "row 7: checksum differs")
  expect_equal(ran$status, 2L)
  expect_length(ran$said, 1)
  expect_match(ran$said, "/s: ak verify rejects it: row 7: checksum differs", fixed = TRUE)
})

test_that("two copies of a folder are refused, both named; another run of the same plan is not", {
  dir <- local_folder()
  rows <- list(plain_row(), plain_row(rep = 2))
  read_rows(dir, rows, "one")
  expect_error(read_rows(dir, rows, "two"), "/one and .*/two: the same launches lie in both \\(2 of run", class = "usage_error")
  again <- lapply(rows, function(row) {
    row$run_id <- "another"
    row
  })
  expect_equal(nrow(read_rows(dir, again, "two")$runs), 4)
})

test_that("one launch of everything, and none of anything, read as whole sentences", {
  claims <- read_claims(file.path(suite, "paper"))
  texts <- function(root) {
    results <- read_results(root, contract)
    registry <- complete_registry(read_registry(""), results$runs$allocator)
    out <- local_folder()
    write_fit(fit_model(results), out)
    fit <- read_fit(out)
    figures <- all_figures(results, fit, registry)
    tables <- all_tables(results, fit, claims, registry)
    list(captions = c(vapply(names(figures), function(k) caption_tex(FIGURE_TITLES[[k]], figures[[k]]), ""),
                      vapply(names(tables), function(k) caption_tex(TABLE_TITLES[[k]], tables[[k]]), "")),
         said = all_numbers(results, fit, claims, registry))
  }
  sound <- function(text) {
    expect_false(any(grepl("\\bNA\\b|NaN|NULL|\\b1 (paired |)launches|\\(\\)|  |n = 0|not measured here:", text)))
  }
  few <- local_folder()
  write_synthetic(few, contract, reps = 1)
  few <- texts(few)
  sound(unlist(few))
  expect_match(few$captions[["throughput"]], "n = 1 launch a point", fixed = TRUE)
  expect_match(few$said[["sayThroughput"]], "no allocator leads or trails separably")
  none <- texts(local_folder())
  sound(unlist(none))
  expect_equal(none$captions[["latency"]], "Latency of one malloc by percentile. Not measured here.")
  expect_false(any(grepl("shaded edge|other object|lifo|ref\\{tab:sensitivity", none$said)))
  full <- local_folder()
  write_synthetic(full, contract)
  full <- texts(full)
  sound(unlist(full))
  expect_true(all(grepl("n = [0-9]|[0-9] launches|[Nn]o launch of ours", full$captions)))
  expect_match(full$said[["sayThroughput"]], "shaded edge")
  expect_match(full$said[["saySharing"]], "other object sizes")
  expect_match(full$captions[["c2c"]], "Medians over n = 8 launches", fixed = TRUE)
})

test_that("a name leads only with those it cannot be told from", {
  by <- data.frame(allocator = c("a", "b", "c, d"), rbind(interval_of(3, 2, 4), interval_of(2.5, 1.5, 3.5),
                                                              interval_of(1, 0.9, 1.1)))
  registry <- complete_registry(read_registry(""), by$allocator)
  words <- function(row) value_words(row, "ns")
  said <- function(...) leader_words(by, 1, 3, "longest", "shortest", "time", registry, words, ...)
  first <- "the longest time is that of a (3.00 [2.00, 4.00] ns)"
  last <- "the shortest is that of ``c, d'' (1.00 [0.90, 1.10] ns)"
  expect_equal(said(), paste0(first, ", not separable from b; ", last, " (each comparison by itself)"))
  expect_equal(said(function(a, b, m) interval_of(1.2, 1.1, 1.3)),
               paste0(first, "; ", last, " (all 3 comparisons together at 95\\,\\%)"))
  few <- function(a, b, m) if (m > 1) interval_of(1.2, NA, NA) else interval_of(1.2, 1.1, 1.3)
  expect_equal(said(few), paste0(first, "; ", last, " (each comparison by itself)"))
  expect_match(said(function(a, b, m) interval_of(1.2, 0.9, 1.3)), "^no allocator leads or trails separably; the longest time")
  expect_equal(leader_words(by[1, ], 1, 1, "longest", "shortest", "time", registry, words),
               "only the time of a (3.00 [2.00, 4.00] ns) was measured")
  expect_equal(value_words(interval_of(3, NA, NA, 2), "ns"), "3.00 ns, n$<$6")
  expect_equal(and_list(c("a", "b", "c")), "a, b and c")
})

test_that("a ratio of writes is a slow-down, a speed-up or neither", {
  expect_match(sharing_words(interval_of(3, 2, 4)), "slow-down$")
  expect_match(sharing_words(interval_of(0.8, 0.7, 0.9)), "speed-up$")
  expect_match(sharing_words(interval_of(0.8, 0.7, 1.1)), "no difference within the interval$")
  expect_equal(sharing_words(interval_of(0.8, NA, NA)), "0.800, n$<$6")
})

test_that("time that the model cannot divide is drawn as not split, and never as the gap", {
  registry <- complete_registry(read_registry(""), c("a", "b"))
  model <- data.frame(allocator = c("a", "b"), n = 1, loop = 2, metadata = c(8, NA), os = NA, gap = c(20, NA), single = 30,
                      residual = 0, predicted = NA, measured = 30, low = 29, high = 31, launches = 6, error = NA)
  figure <- figure_model(list(model = model), registry)
  lines <- lapply(strsplit(figure$files[["model.dat"]][1:2], " "), as.numeric)
  expect_equal(lines[[1]][2:8], c(0, 2, 10, 10, 10, 30, 30))
  expect_equal(lines[[2]][2:8], c(0, 2, 2, 2, 30, 30, 30))
  expect_match(paste(figure$caption, collapse = " "), "Not split")
  expect_no_match(paste(figure_model(list(model = model[1, ]), registry)$caption, collapse = " "), "Not split")
})

test_that("the size figure splits system time off for all or for none, and explains a floor that is none", {
  dir <- local_folder()
  rows <- list()
  for (allocator in c("bump", "glibc")) for (size in c(16, 64)) for (rep in 1:6) {
    row <- plain_row(kernel = "fastpath", variant = "pair", allocator = allocator, threads = 1, size_min = size, size_max = size,
                     size_dist = "fixed", heap_state = "warm", rep = rep)
    # Only glibc's passes at 64 B are long enough to know the system time: it must not be taken from them alone.
    row <- synthetic_timed(row, if (allocator == "bump") 80 else 10, if (allocator == "glibc" && size == 64) 2e7 else 1000)
    row$minor_faults <- if (allocator == "bump") 500 else 0
    rows <- c(rows, list(row))
  }
  results <- read_rows(dir, rows, "sizes")
  registry <- complete_registry(read_registry(""), c("bump", "glibc"))
  figure <- figure_metadata(fit_model(results), registry, results)
  points <- as.numeric(sub(".* ", "", grep("^[0-9]", figure$files[["metadata.dat"]], value = TRUE)))
  expect_equal(points, c(0, 0, 0, 0))
  caption <- paste(figure$caption, collapse = " ")
  expect_match(caption, "Sweep s, folder sizes; heap state warm.", fixed = TRUE)
  expect_match(caption, "System time is inside every point (hollow)", fixed = TRUE)
  expect_match(caption, "bump, which never frees, is no floor .*pair, 16 to 64 B; above glibc.*page faults are inside.*0[.]500")
  expect_no_match(caption, "lifo")
})

test_that("launches that another library served stand for no allocator", {
  dir <- local_folder()
  rows <- list(plain_row(), plain_row(rep = 2, status = "wrong_allocator"), plain_row(rep = 3, status = "skipped"),
               plain_row(rep = 4, status = "crash"))
  table <- table_versions(read_rows(dir, rows), complete_registry(read_registry(""), "glibc"))
  expect_match(paste(table$lines, collapse = " "), "ok & failed & another & not run .* & 1 & 1 & 1 & 1 ")
  expect_match(paste(table$caption, collapse = " "), "another library served")
})

test_that("a moved label is tied to its line, and a label stands at the end that is drawn", {
  lines <- end_labels(c(1, 1, 0.5), c(0.5, 0.51, 0.9), c("a", "b", "c"), rep("#000000", 3))
  expect_length(grep("^set label", lines), 3)
  expect_length(grep("^set arrow", lines), 3)
  expect_length(grep("^set arrow", end_labels(1, 0.5, "a", "#000000")), 0)
  curve <- list(x = c(0.3, 1, 2), ns = c(50, 60, NA))
  none <- list(x = c(0.3, 1, 2), ns = rep(NA_real_, 3))
  panel <- list(n = 1, oversubscribed = FALSE, curves = list(curve), bars = list(), overhead = NA,
                null = list(x = c(0.3, 1, 2), ns = c(20, 20, 9000)))
  registry <- complete_registry(read_registry(""), "glibc")
  labels <- latency_labels(panel, "glibc", registry, c(10, 10000))
  expect_match(grep("'null'", labels, value = TRUE), "graph 0[.]10")
  panel$curves <- list(none)
  expect_match(paste(latency_labels(panel, "glibc", registry, c(10, 10000)), collapse = " "), "no quantile has 100 samples")
})

test_that("tables call threads by their name and leave no cell blank", {
  dir <- local_folder()
  write_synthetic(dir, contract, reps = 6)
  results <- read_results(dir, contract)
  fit <- fit_model(results)
  registry <- complete_registry(read_registry(""), results$runs$allocator)
  for (table in list(table_fit(fit, registry), table_model(fit, registry))) {
    expect_match(table$lines[3], "allocator & threads &", fixed = TRUE)
    expect_false(any(grepl("& +(&|\\\\)", table$lines)))
  }
})

test_that("an empty triangle of the hand-over matrix is explained", {
  half <- data.frame(from_cpu = 0, to_cpu = 1, state = c("modified", "pingpong"), ns = 50)
  runs <- data.frame(folder = "latency", sweep = "latency")
  matrix <- data.frame(key = "latency/a")
  expect_match(paste(c2c_caption(matrix, half, runs), collapse = " "), "lower triangle")
  expect_no_match(paste(c2c_caption(matrix, half[1, ], runs), collapse = " "), "lower triangle")
})
