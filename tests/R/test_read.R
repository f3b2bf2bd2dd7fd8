# Reading: refusal of missing columns, reports of unknown ones, failed rows kept out of numbers.

test_that("the contract is read from schema.md with every column of runs.csv", {
  expect_true(all(c("row_id", "allocator", "ops_per_s", "lat_p999_ns", "load_1min") %in% run_columns()))
  expect_equal(contract[["hist.csv"]]$column, c("row_id", "call", "lower_ns", "upper_ns", "count"))
  expect_false(any(duplicated(run_columns())))
})

test_that("a missing column is refused with exit 2, the column and the file named", {
  dir <- local_folder()
  read_rows(dir, list(plain_row()))
  file <- file.path(dir, "s", "runs.csv")
  lines <- strsplit(readLines(file), ",")
  drop <- which(lines[[1]] %in% c("wall_ns", "touch"))
  writeLines(vapply(lines, function(cells) paste(c(cells, "")[seq_along(lines[[1]])][-drop], collapse = ","), ""), file)
  ran <- run_analysis("fit.R", dir, file.path(dir, "out"))
  expect_equal(ran$status, 2L)
  expect_match(ran$said, "runs.csv")
  expect_match(ran$said, "wall_ns, touch")
})

test_that("an unknown column is reported and the rest is read", {
  dir <- local_folder()
  read_rows(dir, list(plain_row()))
  file <- file.path(dir, "s", "runs.csv")
  lines <- readLines(file)
  writeLines(paste0(lines, c(",novelty", ",7")), file)
  expect_warning(results <- read_results(dir, contract), "novelty")
  expect_equal(nrow(results$runs), 1)
})

test_that("rows of the simulated machine stand apart, those that did not end well too", {
  dir <- local_folder()
  timeless <- plain_row(counters = "sim", sim_mode = "weave", sim_quantum = 1000, sim_false_sharing = 7, wall_ns = "",
                        ops_per_s = "", cpus = 64)
  results <- read_rows(dir, list(plain_row(), timeless, plain_row(counters = "", sim_mode = "weave", status = "timeout")))
  expect_equal(results$runs$cpus, 2)
  expect_equal(results$simulated$status, c("ok", "timeout"))
  expect_equal(results$simulated$sim_false_sharing, c(7, NA))
  expect_true(all(is.na(results$simulated$ns_per_op[1])))
})

test_that("a folder from before there was a simulated machine is read", {
  dir <- local_folder()
  old <- contract
  old[["runs.csv"]] <- old[["runs.csv"]][!startsWith(run_columns(), "sim_"), ]
  row <- plain_row()
  row$row_id <- "aa"
  synthetic_write(file.path(dir, "s"), old, list(row))
  results <- read_results(dir, contract)
  expect_equal(nrow(results$runs), 1)
  expect_true(is.numeric(results$runs$sim_false_sharing))
  expect_equal(nrow(results$simulated), 0)
})

test_that("columns are found by name, not by place", {
  dir <- local_folder()
  rows <- list(plain_row())
  rows[[1]]$row_id <- "aa"
  turned <- contract
  turned[["runs.csv"]] <- turned[["runs.csv"]][rev(seq_along(run_columns())), ]
  synthetic_write(file.path(dir, "s"), turned, rows)
  results <- read_results(dir, contract)
  expect_equal(results$runs$allocator, "glibc")
  expect_equal(results$runs$ns_per_op, 10)
})

test_that("a word where a number belongs is refused, with row and column", {
  dir <- local_folder()
  expect_error(read_rows(dir, list(plain_row(wall_ns = "soon"))), "runs.csv:2: wall_ns: a number was expected, not 'soon'",
               class = "usage_error")
})

test_that("what cannot be in a row that ended well is refused, with line and column", {
  refused <- function(message, ...) {
    expect_error(read_rows(local_folder(), list(plain_row(), plain_row(rep = 2, ...))), paste0("runs.csv:3: ", message),
                 class = "usage_error", fixed = TRUE)
  }
  refused("cpus: empty in an ok row", cpus = "")
  refused("threads: empty in an ok row", threads = "")
  refused("wall_ns: expected a number from 1 on, not 0", wall_ns = 0)
  refused("wall_ns: expected a number from 1 on, not Inf", wall_ns = "Inf")
  refused("ops_per_s: expected a number above 0, not 0", ops_per_s = 0)
  refused("ops_per_s: expected a number above 0, not -5", ops_per_s = -5)
  refused("ops: expected a number from 1 on", ops = -1)
  refused("cpu_user_ns: expected a number from 0 on", cpu_user_ns = -1)
  refused("steal_ratio: expected a number from 0 to 1, not 1.5", steal_ratio = 1.5)
  refused("l3_miss_ratio: expected a number from 0 to 1", l3_miss_ratio = -0.1)
  refused("oversubscribed: expected a number from 0 to 1", oversubscribed = 2)
  refused("rss_overhead_bytes: expected a number", rss_overhead_bytes = "-Inf")
  expect_equal(nrow(read_rows(local_folder(), list(plain_row(rss_overhead_bytes = -5)))$runs), 1)
  expect_equal(nrow(read_rows(local_folder(), list(plain_row(status = "timeout", wall_ns = 0, cpus = "")))$runs), 1)
  twice <- list(plain_row(row_id = "aa"), plain_row(row_id = "aa"))
  expect_error(read_rows(local_folder(), twice), "runs.csv:3: row_id: the same launch is in line 2 already",
               class = "usage_error", fixed = TRUE)
  twice[[1]]$status <- "timeout"
  expect_warning(again <- read_rows(local_folder(), twice), "1 rows were written again; the last of each counts")
  expect_equal(again$runs$status, "ok")
})

test_that("an unknown status is refused", {
  dir <- local_folder()
  expect_error(read_rows(dir, list(plain_row(status = "fine"))), "unknown word 'fine'", class = "usage_error")
})

test_that("a torn last line is left out and reported", {
  dir <- local_folder()
  read_rows(dir, list(plain_row(), plain_row(rep = 2)))
  file <- file.path(dir, "s", "runs.csv")
  bytes <- readBin(file, "raw", 1e6)
  writeBin(bytes[seq_len(length(bytes) - 40)], file)
  expect_warning(results <- read_results(dir, contract), "torn")
  expect_equal(nrow(results$runs), 1)
})

test_that("quotes, commas and UTF-8 in a text survive", {
  dir <- local_folder()
  odd <- "died, \"really\": \u00fcber 100%"
  results <- read_rows(dir, list(plain_row(status = "crash", status_detail = odd)))
  expect_equal(results$runs$status_detail, odd)
})

test_that("failed rows are never numbers", {
  dir <- local_folder()
  rows <- lapply(1:8, function(rep) plain_row(rep = rep, size_min = 16, size_max = 65536))
  rows[[9]] <- plain_row(rep = 9, size_min = 16, size_max = 65536, status = "timeout", status_detail = "late",
                         wall_ns = 1, ops_per_s = 1e15)
  results <- read_rows(dir, rows)
  figure <- figure_throughput(results, complete_registry(read_registry(""), "glibc"))
  expect_equal(figure$launches, 8)
  expect_equal(figure$failed, 1)
  expect_match(paste(figure$caption, collapse = " "), "Left out: 1 launch that failed (1 timeout)", fixed = TRUE)
  numbers <- as.numeric(strsplit(figure$files[["throughput.dat"]][1], " ")[[1]])
  expect_equal(numbers[2], 100, tolerance = 1e-3)
  whole <- fit_model(results)$fit
  expect_equal(whole$launches[whole$term == "T_alloc"], 8)
  expect_match(paste(table_launches(results)$lines, collapse = " "), "1 timeout")
})

test_that("kernel parameters of metrics.csv are part of a cell", {
  dir <- local_folder()
  rows <- list(plain_row(row_id = "a1"), plain_row(row_id = "a2", rep = 2))
  results <- read_rows(dir, rows, metrics = c("a1,param.batch,count,256,", "a2,param.batch,count,32,", "a1,lines,count,3,"))
  expect_equal(results$runs$params, c("batch=256", "batch=32"))
  expect_equal(nrow(pick_slice(results$runs)), 1)
})

test_that("missing side files and an empty root are no error; a missing root is", {
  dir <- local_folder()
  read_rows(dir, list(plain_row()))
  unlink(file.path(dir, "s", c("hist.csv", "timeline.csv", "metrics.csv", "matrix.csv", "meta.json")))
  expect_equal(nrow(read_results(dir, contract)$runs), 1)
  empty <- local_folder()
  expect_equal(nrow(read_results(empty, contract)$runs), 0)
  expect_error(read_results(file.path(empty, "none"), contract), "no such folder", class = "usage_error")
})

# two runs of one plan on two machines, laid out as `ak merge` does
merged_folder <- function(dir) {
  rows <- lapply(c("r1", "r2"), function(run) {
    row <- plain_row(run_id = run, machine_id = paste0("machine-", run), ops_per_thread = 100)
    row$row_id <- "aaaaaaaaaaaaaaaa"
    row
  })
  synthetic_write(file.path(dir, "m"), contract, rows)
  writeLines(c("row_id,name,unit,value,reason,run_id", "aaaaaaaaaaaaaaaa,param.batch,count,1,,r1",
               "aaaaaaaaaaaaaaaa,param.batch,count,2,,r2"), file.path(dir, "m", "metrics.csv"))
  writeLines(c("row_id,call,lower_ns,upper_ns,count,run_id", "aaaaaaaaaaaaaaaa,malloc,1,2,10,r1",
               "aaaaaaaaaaaaaaaa,malloc,1,2,20,r2"), file.path(dir, "m", "hist.csv"))
  for (name in c("timeline.csv", "matrix.csv")) {
    file <- file.path(dir, "m", name)
    writeLines(paste0(readLines(file), ",run_id"), file) # a header alone
  }
  for (run in c("r1", "r2")) {
    part <- file.path(dir, "m", "parts", run)
    dir.create(part, recursive = TRUE)
    stopping <- if (run == "r2") ", \"stopping\": {\"rule\": \"width\", \"looks\": 5}" else ""
    writeLines(sprintf("{\"run_id\": \"%s\", \"machine_id\": \"machine-%s\"%s}", run, run, stopping),
               file.path(part, "meta.json"))
    writeLines(c("row_id,options", sprintf("aaaaaaaaaaaaaaaa,%s=100", if (run == "r1") "ops" else "ops_total")),
               file.path(part, "plan.csv"))
  }
}

test_that("a merged folder: rows of one id in two runs are two launches, each with its own lines and plan", {
  dir <- local_folder()
  merged_folder(dir)
  results <- read_results(dir, contract, "all")
  expect_equal(results$runs$key, c("m/r1:aaaaaaaaaaaaaaaa", "m/r2:aaaaaaaaaaaaaaaa"))
  expect_equal(results$runs$params, c("batch=1", "batch=2"))
  expect_equal(results$runs$work, c("100 a thread", "100 in total"))
  expect_equal(read_hist(results, results$runs$key[2], "malloc")$count, 20)
  expect_equal(names(results$meta), c("r1", "r2"))
  expect_equal(results$runs$confidence == CONFIDENCE, c(TRUE, FALSE))
})

test_that("of several machines one is read: the one with the most launches that went well, or the one that is named", {
  dir <- local_folder()
  merged_folder(dir)
  expect_warning(chosen <- read_results(dir, contract), "2 machines; those of machine-r1 are read")
  expect_equal(chosen$runs$machine_id, "machine-r1")
  named <- read_results(dir, contract, "machine-r2")
  expect_equal(named$runs$machine_id, "machine-r2")
  expect_equal(named$metrics$value, "2")
  expect_equal(names(named$meta), "r2")
  expect_error(read_results(dir, contract, "machine-r3"), "no launch of machine machine-r3")
})

test_that("the same cell on two machines is never one group", {
  dir <- local_folder()
  merged_folder(dir)
  runs <- read_results(dir, contract, "all")$runs
  runs$params <- runs$work <- ""
  expect_equal(nrow(group_intervals(runs, c("allocator", CELL_COLUMNS), "ns_per_op")), 2)
  expect_equal(nrow(pick_slice(runs)), 1)
  expect_equal(nrow(pair_rows(runs[1, ], runs[2, ], CELL_COLUMNS)), 0)
})

test_that("a repetition of a cell under another row_id is refused, cells that only the plan tells apart are not", {
  dir <- local_folder()
  pair <- function(...) list(plain_row(row_id = "aa"), plain_row(row_id = "bb", ...))
  expect_error(read_rows(dir, pair()), paste("runs.csv:3: row_id: repetition 1 of churn with glibc and 1 thread is in line 2",
                                             "already, under another row_id; take one of the two away"), class = "usage_error")
  for (differs in list(list(rep = 2), list(allocator = "tlfl"), list(variant = "x"), list(ops_per_thread = 9),
                       list(status = "oom"))) {
    expect_silent(do.call(function(...) read_rows(local_folder(), pair(...)), differs))
  }
  expect_error(read_rows(local_folder(), pair(seed = 9, env_bytes = 7)), "under another row_id")
  plan <- function(gaps) {
    writeLines(c("row_id,options", sprintf("%s,lat_gap=%d", c("aa", "bb"), gaps)), file.path(dir, "s", "plan.csv"))
  }
  plan(c(4, 8))
  expect_equal(nrow(read_results(dir, contract)$runs), 2)
  plan(c(4, 4))
  expect_error(read_results(dir, contract), "under another row_id")
})

test_that("what an analysis script makes is gone when it fails, and what it no longer makes too", {
  out <- local_folder()
  made <- c(fit.R = "fit.csv", fit.R = "terms.csv", figures.R = "throughput.dat", figures.R = "gone.svg", figures.R = "gone.gp",
            bench.R = "figures.csv", bench.R = "bench.md", bench_simulator.R = "simulator.md")
  for (script in unique(names(made))) {
    file.create(file.path(out, made[names(made) == script]))
    ran <- switch(script, bench.R = run_analysis(script, out, "tlfl"), bench_simulator.R = run_analysis(script, out),
                  run_analysis(script, file.path(out, "none"), out))
    if (script != "bench.R") expect_equal(ran$status, 2L)
    if (script == "bench.R") expect_true(file.info(file.path(out, "bench.md"))$size > 0) # made anew, of nothing
    else expect_false(any(file.exists(file.path(out, made[names(made) == script]))), info = script)
  }
  files <- vapply(world_files(), `[[`, "", 1)
  declared <- paste(readLines(file.path(suite, "analysis", "fit.R")), collapse = "")
  for (file in c(files, "fit.csv", "model.csv", "heldout.csv")) {
    expect_true(grepl(paste0("\"", file, "\""), declared), info = file)
  }
})
