# The claims about applications, over made results: each comes out as planted, where conditions are met, differ, or effects do.

# As if every source had run version 1.0 of everything, and the very program.
met_conditions <- function(lines) sub("(,version[.][a-z]+),.*", "\\1,1.0", lines[!grepl(",program,", lines)])
full <- claims_in(change = met_conditions)
today <- claims_in()

# What a launch has where the published conditions are met.
MET <- list(ops = 1e7, cpus = 4, params = c(connections = 500, load_threads = 12, seconds = 5, in_flight = 32, file_bytes = 4e9))

made <- new.env()
made$cells <- 0

#' Launches of an application.
#' @param sweep,kernel,allocator,reps of them; threads are those of the kernel
#' @param values function(rep) -> named: columns of runs.csv, or metrics
#' @param met as MET
application_rows <- function(sweep, kernel, allocator, values, met = MET, reps = 8, variant = "", threads = 1,
                             ops = met$ops) {
  made$cells <- made$cells + 1
  parts <- lapply(seq_len(reps), function(rep) {
    id <- sprintf("%08x%08x", made$cells, rep)
    row <- synthetic_common(run_columns(), sweep, kernel, allocator, threads, max(threads, met$cpus), rep, row_id = id,
                            variant = variant)
    row$allocator_version <- "1.0"
    row <- synthetic_timed(row, 100, ops / threads)
    own <- values(rep)
    columns <- intersect(names(own), run_columns())
    row[columns] <- as.list(own[columns])
    metrics <- c(own[setdiff(names(own), columns)], stats::setNames(met$params, paste0("param.", names(met$params))))
    text <- vapply(metrics, format, "", digits = 12, scientific = FALSE)
    list(row = row, metrics = sprintf("%s,%s,x,%s,", id, names(metrics), text))
  })
  list(list(sweep = sweep, rows = lapply(parts, `[[`, "row"), metrics = unlist(lapply(parts, `[[`, "metrics"))))
}

#' A results root of such parts.
application_results <- function(..., env = parent.frame()) {
  dir <- local_folder(env)
  parts <- c(...)
  for (sweep in unique(vapply(parts, `[[`, "", "sweep"))) {
    own <- Filter(function(part) part$sweep == sweep, parts)
    synthetic_write(file.path(dir, sweep), contract, unlist(lapply(own, `[[`, "rows"), recursive = FALSE),
                    metrics = unlist(lapply(own, `[[`, "metrics")))
  }
  read_results(dir, contract)
}

#' What has to stand in a row, so that a metric is `value`.
values_of <- function(metric, value) {
  switch(metric, faults_per_op = c(minor_faults = round(1e7 * value), major_faults = 0),
         cpu_ns_per_op = c(cpu_user_ns = round(1e7 * value), cpu_sys_ns = 0), stats::setNames(value, metric))
}

SPREAD <- 0.002

#' Launches of a hypothesis's allocators with an effect: a over b, or a less b, or a.
#' @param effect in the metric's own unit
planted_parts <- function(h, effect, met = MET, metric = h$metric, sweep = words_of(h$sweeps)[1], kernel = h$kernel,
                          allocators = hypothesis_allocators(h)) {
  variant <- if (grepl("variant=", h$filter)) sub(".*variant=([a-z]+).*", "\\1", h$filter) else ""
  threads <- if (grepl("threads=", h$filter)) 64 else 1
  base <- if (h$kind == "difference") 0.4 else if (metric %in% c("wall_ns", "rss_peak_bytes")) 1e9 else 1000
  times <- h$kind %in% c("ratio", "equivalence", "decision")
  unlist(lapply(seq_along(allocators), function(k) {
    application_rows(sweep, kernel, allocators[k], met = met, variant = variant, threads = threads, values = function(rep) {
      noise <- SPREAD * (rep - 4.5) * (k == 1)
      value <- if (length(allocators) == 1) effect + noise * abs(effect)
               else if (k == 2) base else if (times) base * effect * (1 + noise) else base + effect * (1 + noise)
      values_of(metric, if (base >= 1e9) round(value) else value)
    })
  }), recursive = FALSE)
}

#' Launches at four sizes of input, whose time and memory grow as a power of it.
linear_parts <- function(h, power, met = MET) {
  unlist(lapply(hypothesis_allocators(h), function(allocator) {
    unlist(lapply(10^(5:8) * met$ops / 1e7, function(ops) {
      application_rows("ndjson", "ndjson", allocator, met = met, ops = ops, values = function(rep) {
        value <- round(1e6 + 100 * ops^power * (1 + SPREAD * (rep - 4.5) / 4))
        c(wall_ns = value, rss_peak_bytes = value)
      })
    }), recursive = FALSE)
  }), recursive = FALSE)
}

#' The rule: times of two programs in their sweeps, shares in those under a profiler. The store has a small share.
decision_parts <- function(h, gain_of_store, met = MET) {
  program <- function(kernel, gain, share) {
    c(planted_parts(h, 1 / gain, met, "ops_per_s", kernel, kernel),
      application_rows(paste0(kernel, "-share"), kernel, "glibc", function(rep) c(wall_ns = 9e9, malloc_share = share), met))
  }
  c(program("ndjson", 0.7, 0.4), program("item_store", gain_of_store, 0.02))
}

#' Launches in which a claim holds, or does not.
claim_parts <- function(h, holds, met = MET) {
  published <- published_effect_of(h)
  if (h$kind == "linear") return(linear_parts(h, if (holds) 1 else 1.3, met))
  if (h$kind == "decision") return(decision_parts(h, if (holds) 1 else 0.7, met))
  effect <- switch(h$kind, ratio = if (holds) published else 1 / published, equivalence = if (holds) 1.001 else 1.3,
                   difference = , order = if (holds) published else -published, bound = if (holds) 280 else 500)
  planted_parts(h, effect, met)
}

published_effect_of <- function(h) if (h$kind %in% c("ratio", "difference", "order")) published_effect(full, h) else NA

verdict_on <- function(results, data, id) test_hypothesis(results, hypothesis_of(data, id), data)$verdict

TESTED <- setdiff(full$claims$id[grepl("^(parse|http|kv)[.]", full$claims$id)], "http.rss.container")
REDUCED <- c("parse.wall", "parse.linear", "parse.hash", "http.p99", "kv.put.ops", "kv.rss") # each condition once
FEWER <- list(ops = 1e4, cpus = 4, params = MET$params / c(10, 4, 5, 2, 1e4))

for (id in TESTED) {
  test_that(paste(id, "comes out as planted: reproduced, direction only, not reproduced"), {
    h <- hypothesis_of(full, id)
    holds <- application_results(claim_parts(h, TRUE))
    expect_equal(verdict_on(holds, full, id)$verdict, "reproduced")
    as_published <- verdict_on(holds, today, id)
    expect_equal(as_published$verdict, "direction only") # another program, versions that the source does not state
    expect_gt(nchar(as_published$conditions), 0)
    expect_equal(verdict_on(application_results(claim_parts(h, FALSE)), full, id)$verdict, "not reproduced")
    if (id %in% REDUCED) {
      reduced <- verdict_on(application_results(claim_parts(h, TRUE, FEWER)), full, id)
      expect_equal(reduced$verdict, "direction only")
      expect_match(reduced$conditions, "reduced: ")
    }
  })
}

test_that("the rule of a double-digit share is put to every program, and says which one it is wrong about", {
  h <- hypothesis_of(full, "parse.rule")
  wrong <- verdict_on(application_results(decision_parts(h, 0.7)), full, "parse.rule")
  expect_match(wrong$note, "(kernel item_store); gains at a share of 2.0 %", fixed = TRUE)
  # Times of launches under a profiler say nothing: without others there is no verdict.
  shares <- Filter(function(part) endsWith(part$sweep, "-share"), decision_parts(h, 1))
  expect_equal(verdict_on(application_results(shares), full, "parse.rule")$note,
               "no paired launches; so in all of 2 cells; the value is of one (kernel item_store)")
  times <- Filter(function(part) !endsWith(part$sweep, "-share"), decision_parts(h, 1))
  expect_match(verdict_on(application_results(times), full, "parse.rule")$note, "the share in malloc and free was not measured")
})

test_that("a program without a variant is named without one", {
  parts <- lapply(decision_parts(hypothesis_of(full, "parse.rule"), 1), function(part) {
    if (startsWith(part$sweep, "item_store")) part$rows <- lapply(part$rows, function(row) replace(row, "variant", "put"))
    part
  })
  cells <- test_hypothesis(application_results(parts), hypothesis_of(full, "parse.rule"), full)$cells
  expect_setequal(cells$setting, c("kernel ndjson", "kernel item_store, variant put"))
})

test_that("a ratio too uncertain to exclude either is open, with its value", {
  h <- hypothesis_of(full, "http.mean")
  own <- function(allocator, values) {
    application_rows(h$sweeps, h$kernel, allocator, function(rep) c(request_mean_ms = values[rep]), variant = "malloc")
  }
  results <- application_results(own("musl-mimalloc", c(0.57, 0.7, 0.9, 1.1, 1.14, 1.3, 1.6, 1.74)),
                                 own("musl-jemalloc", rep(1, 8)))
  line <- claim_line(results, full, "http.mean")
  expect_equal(line$verdict, "open")
  expect_equal(line$value, sqrt(1.1 * 1.14), tolerance = 1e-6)
})

test_that("a remark has a value only where something can be said of it", {
  of <- function(rep_of, reps = 8) {
    parts <- lapply(linear_parts(hypothesis_of(full, "parse.linear"), 1), function(part) {
      part$rows <- lapply(seq_len(reps), function(rep) {
        row <- part$rows[[rep]]
        row$rss_peak_bytes <- rep_of(row$rss_peak_bytes, rep)
        row
      })
      part$metrics <- part$metrics[grepl(paste(vapply(part$rows, `[[`, "", "row_id"), collapse = "|"), part$metrics)]
      part
    })
    claim_line(application_results(parts), full, "parse.linear")$note
  }
  same <- function(value, rep) value
  expect_match(of(same), "resident memory: 1.00 ratio, reproduced$")
  expect_match(of(same, 5), "resident memory: not yet measured$")
  expect_match(of(function(value, rep) round(value * rep)), "resident memory: \\[[^]]*\\] ratio, open$")
})

test_that("a stand-in is taken for what has no launches, is said to differ, and never for one of a pair alone", {
  h <- hypothesis_of(full, "parse.wall")
  preloaded <- application_results(planted_parts(h, 0.66, allocators = c("mimalloc", "glibc")))
  verdict <- verdict_on(preloaded, full, "parse.wall")
  expect_equal(verdict$verdict, "direction only")
  expect_match(verdict$conditions, "^mimalloc not built secure$")
  both <- application_results(planted_parts(h, 0.66), planted_parts(h, 1.5, allocators = "mimalloc"))
  expect_equal(verdict_on(both, full, "parse.wall")$verdict, "reproduced")
  http <- hypothesis_of(full, "http.mean")
  glibc <- planted_parts(http, 0.962, sweep = "http_server", allocators = c("mimalloc", "jemalloc"))
  expect_match(verdict_on(application_results(glibc), full, "http.mean")$conditions, "^preloaded into a program of glibc")
  mixed <- application_results(planted_parts(http, 0.962, sweep = "http_server", allocators = c("musl-mimalloc", "jemalloc")))
  expect_equal(verdict_on(mixed, full, "http.mean")$verdict, "not yet measured")
})

test_that("another sweep of the suite is another question; one of the reader's own is looked at", {
  h <- hypothesis_of(full, "http.p99")
  ratio <- published_effect(full, h)
  expect_equal(verdict_on(application_results(planted_parts(h, ratio, sweep = "fastpath")), full, "http.p99")$verdict,
               "not yet measured")
  expect_equal(verdict_on(application_results(planted_parts(h, ratio, sweep = "mine")), full, "http.p99")$verdict, "reproduced")
})

test_that("of several sizes that of the claim is judged, and why a share is empty is told", {
  h <- hypothesis_of(full, "parse.wall")
  sizes <- application_results(planted_parts(h, 0.66), planted_parts(h, 1.5, met = FEWER))
  expect_equal(verdict_on(sizes, full, "parse.wall")$verdict, "reproduced")
  share <- hypothesis_of(full, "parse.share")
  empty <- lapply(planted_parts(share, -0.313), function(part) {
    part$metrics <- sub("(malloc_share,x),.*", "\\1,,perf is not installed", part$metrics)
    part
  })
  verdict <- verdict_on(application_results(empty), full, "parse.share")
  expect_equal(verdict$verdict, "not testable here")
  expect_match(verdict$note, "^perf is not installed")
})

test_that("disturbed windows are told, and stay in", {
  h <- hypothesis_of(full, "kv.put.ops")
  parts <- lapply(planted_parts(h, 1.001), function(part) {
    ids <- vapply(part$rows, `[[`, "", "row_id")
    part$metrics <- c(part$metrics, sprintf("%s,window1_disturbed,,%d,", ids, c(1, rep(0, 7))),
                      sprintf("%s,window2_disturbed,,,the machine tells no steal", ids))
    part
  })
  line <- claim_line(application_results(parts), full, "kv.put.ops")
  expect_match(line$note, "^2 of 32 windows disturbed .steal, other programs., none left out; margin 5 %")
  expect_equal(c(line$verdict, line$launches), c("reproduced", "8"))
})

# ---- the paper's tables ----

registry <- complete_registry(read_registry(file.path(suite, "allocators", "registry.ini")), "mimalloc-secure")

#' Launches of three applications: mimalloc takes 0.8 of the time of the parser and as long in the hash; shares of the parser.
applications <- function(reps = 8) {
  wall <- function(ns) {
    function(rep) c(wall_ns = ns * (1 + SPREAD * rep), rss_peak_bytes = 1e8 + rep, cpu_user_ns = ns, cpu_sys_ns = 0)
  }
  rows <- function(kernel, allocator, ns, ...) application_rows(kernel, kernel, allocator, wall(ns), reps = reps, ...)
  application_results(
    rows("ndjson", "glibc", 1e9), rows("ndjson", "mimalloc", 8e8), rows("ndjson", "mimalloc-secure", 9e8),
    rows("ndjson", "glibc", 1e8, ops = 1e6), rows("ndjson", "mimalloc", 5e8, ops = 1e6),
    rows("item_store", "glibc", 1e9, variant = "put"), rows("item_store", "mimalloc", 9e8, variant = "put"),
    rows("item_store", "glibc", 1e9, variant = "insert"), rows("item_store", "mimalloc", 1e9, variant = "insert"),
    application_rows("ndjson-share", "ndjson", "glibc", function(rep) c(wall_ns = 1, malloc_share = 0.38, libc_share = 0.5))
  )
}

test_that("ratios of applications are of the largest input, by variant, and never of launches under a profiler", {
  ratios <- application_ratios(applications())
  wall <- ratios[ratios$metric == "wall_per_op", ]
  store <- paste0("item store on PostgreSQL, ", c("insert", "put"))
  expect_equal(wall$text, c("NDJSON parser", "NDJSON parser", store))
  expect_equal(wall$value, c(0.8, 0.9, 1, 0.9), tolerance = 1e-3)
  expect_true(all(ratios$launches == 8 & ratios$base == "glibc"))
  expect_true(all(is.na(ratios$apart))) # eight launches tell nothing of so many at once
  many <- application_ratios(applications(14))
  expect_true(all(many$apart[many$metric == "wall_per_op" & many$value < 0.95]))
  expect_false(any(many$apart[many$value > 0.95 & many$metric == "cpu_ns_per_op"]))
})

test_that("the tables have every application, the second build beside the first, marks, and n", {
  results <- applications(14)
  table <- table_applications(results, registry)
  lines <- table$lines[grepl("NDJSON", table$lines)]
  expect_match(lines, "0.800$^{\\S}$ {\\footnotesize [0.800, 0.800]}; 0.900$^{\\S}$", fixed = TRUE)
  caption <- paste(table$caption, collapse = " ")
  expect_match(caption, "differs from 1 also where all 12 hold together at 95", fixed = TRUE)
  expect_match(caption, "n = 14 pairs of launches", fixed = TRUE)
  few <- paste(table_applications(applications(6), registry)$caption, collapse = " ")
  expect_match(few, "for all 12 to hold together at 95\\,\\%, each takes 9 launches", fixed = TRUE)
  shares <- table_shares(results, registry)
  expect_true(any(grepl("ndjson & in malloc and free & 38.0 {", shares$lines, fixed = TRUE)))
  said <- application_macros(results, registry)[["sayApplications"]]
  expect_match(said, "The applications ran on 3 workloads. Of 4 ratios of time, 3 are below one, none are above and 1 is neither",
               fixed = TRUE)
})

test_that("without applications the section says so", {
  none <- read_rows(local_folder(), list(plain_row()))
  expect_match(table_applications(none, registry)$reason, "^not measured here: no rows of the applications")
  expect_match(table_shares(none, registry)$reason, "^not measured here: no rows of an application under a profiler")
  short <- application_rows("ndjson-share", "ndjson", "glibc", function(rep) c(malloc_share = 0.1))
  short[[1]]$metrics <- sub("(malloc_share,x),.*", "\\1,,11 samples are too few", short[[1]]$metrics)
  expect_equal(table_shares(application_results(short), registry)$reason, "not measured here: 11 samples are too few")
  expect_match(application_macros(none, registry), "^None of the applications was measured")
  skipped <- application_results(application_rows("redis", "redis", "glibc", function(rep) c(status = "skipped")))
  expect_match(table_applications(skipped, registry)$reason, "8 skipped", fixed = TRUE)
})
