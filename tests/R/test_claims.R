# The ledger: hypotheses as data, the arithmetic of sources, a verdict for every kind of claim, and how it is shown.

claims <- read_claims(file.path(suite, "paper"))
KINDS_OF_OURS <- setdiff(HYPOTHESIS_KINDS, "arithmetic")

FEW <- "paper.(parity|ops|p999|none)" # claims that tell what is refused as well as all do

#' hypotheses.csv with one line replaced or added.
with_line <- function(line, instead = "^$") {
  lines <- readLines(file.path(suite, "paper", "hypotheses.csv"))
  c(lines[!grepl(instead, lines)], line)
}

#' The ledger's line of a claim over rows.
line_of <- function(id, rows, data = claims, sweep = "s", ...) {
  claim_line(read_rows(local_folder(), rows, sweep, ...), data, id)
}

all_sweeps <- local({
  dir <- local_folder()
  write_synthetic(dir, contract, reps = 6)
  read_results(dir, contract)
})
# Its histograms are read on demand, and are gone: quantiles of these rows need none.

nothing <- function() read_results(local_folder(), contract)

test_that("every claim has one line with a known verdict, also without any rows, and says what it waits for", {
  ledger <- claims_ledger(nothing(), claims)
  expect_equal(ledger$id, claims$claims$id)
  expect_named(ledger, LEDGER_COLUMNS)
  expect_true(all(ledger$verdict %in% c(WAITING_VERDICTS, "contradicted by its own numbers")))
  expect_true(all(nzchar(ledger$note)))
  expect_true(all(ledger$row_ids == "" & ledger$launches == 0 & is.na(ledger$value)))
  note <- function(id) ledger$note[ledger$id == id]
  early <- claims
  early$kernels <- setdiff(claims$kernels, "ndjson")
  expect_match(claim_line(nothing(), early, "parse.wall")$note, "^waits for NDJSON parsing .ndjson: not written yet")
  expect_match(note("paper.ops"), "^no churn rows .sweep paper")
  expect_match(note("paper.scaling"), "no churn rows of threads>=33, touch=none")
  expect_equal(ledger$verdict[ledger$id == "http.rss.container"], "not testable here")
  expect_match(note("http.rss.container"), "^it takes .*statically")
})

test_that("the sources' own numbers: 68 % that is 31 %, two absolutes of one ratio, Little, Amdahl, page faults", {
  outcome <- function(id) {
    lines <- claims$hypotheses[claims$hypotheses$claim == id & claims$hypotheses$kind == "arithmetic", ]
    vapply(seq_len(nrow(lines)), function(i) check_arithmetic(lines[i, ], claims, claim_source(claims, id))$outcome, "")
  }
  expect_equal(outcome("http.rss"), c("breaks", "holds"))
  expect_equal(outcome("parse.wall"), c("holds", "holds", "breaks", "within margin"))
  expect_equal(outcome("paper.ops"), c("holds", "breaks", "holds"))
  expect_equal(outcome("parse.faults"), c("holds", "within margin", "breaks"))
  expect_equal(outcome("parse.share"), "within margin")
  broken <- vapply(claims$claims$id, function(id) length(claim_arithmetic(claims, id)$broken) > 0, NA)
  expect_equal(names(which(broken)), "http.rss")
  line <- claim_line(nothing(), claims, "http.rss")
  expect_equal(line$verdict, "contradicted by its own numbers")
  expect_match(line$note, "says a decrease of 68 %; its values give 31.2 %: does not hold; ours: not yet measured", fixed = TRUE)
})

test_that("a veto that broke holds where the text says what its numbers give", {
  lines <- readLines(file.path(suite, "paper", "hypotheses.csv"))
  data <- claims_in(sub(",68,,says a decrease", ",31,,says a decrease", lines))
  expect_equal(claim_line(nothing(), data, "http.rss")$verdict, "not yet measured")
})

check_of <- function(left, relation, right, margin = NA) {
  check_arithmetic(list(left = left, relation = relation, right = right, margin = margin, words = "{left} {right}",
                        where = "h.csv:2"), claims, "contention paper")
}

test_that("a printed number stands for all that round to it", {
  expect_equal(half_unit(c("4.18", "38.2", "15092", "5")), c(0.005, 0.05, 0.5, 0.5))
  side <- evaluate_side("parse.wall.glibc.1 - parse.wall.mimalloc.1", claims, "parsing post", "h.csv:2")
  expect_equal(c(side$value, side$low, side$high), c(1.43, 1.42, 1.44))
  ratio <- evaluate_side("parse.wall.glibc.1 / parse.wall.mimalloc.1", claims, "parsing post", "h.csv:2")
  expect_equal(c(ratio$low, ratio$high), c(4.175 / 2.755, 4.185 / 2.745))
  expect_equal(check_of("paper.ops.glibc", "=", "4.1")$outcome, "holds")     # 4.115 to 4.125 meets 4.05 to 4.15
  expect_equal(check_of("paper.ops.glibc", "=", "4.0")$outcome, "breaks")
  expect_equal(check_of("paper.ops.glibc", "=", "4.0", 0.05)$outcome, "within margin")
  expect_equal(check_of("paper.ops.glibc", "<=", "4.11")$outcome, "holds")
  expect_equal(check_of("paper.ops.glibc", "<=", "4.10")$outcome, "breaks")
  expect_equal(check_of("paper.ops.glibc", ">=", "4.14")$outcome, "breaks")
  expect_equal(check_of("condition.threads * 2", "=", "128")$text, "128 128: holds")
  expect_equal(evaluate_side("kv.rss.glibc", claims, "x", "h.csv:2")$value, 334)
  expect_equal(evaluate_side("kv.rss.glibc.high", claims, "x", "h.csv:2")$value, 359)
})

test_that("what is no formula, or names what is not there, is refused with its place", {
  refused <- function(left, message) expect_error(check_of(left, "=", "1"), message, class = "usage_error")
  refused("system('id')", "h.csv:2: 'system.*expected numbers, published values")
  refused("paper.ops.glibc[1]", "h.csv:2")
  refused("1 +", "h.csv:2: not a formula")
  refused("paper.ops.nobody", "h.csv:2: paper.ops.nobody: no such value in claim_values.csv")
  refused("condition.wind * 2", "h.csv:2: condition.wind: conditions.csv has no such number")
  refused("parse.rule.any.high", "the value is empty")
})

test_that("the validator refuses what it does not know, with file and line", {
  refused <- function(line, message, instead = "^paper.parity,test") {
    expect_error(claims_in(with_line(line, instead), FEW), message, class = "usage_error", info = line)
  }
  n <- sum(grepl(paste0("^(claim|", FEW, ")"), readLines(file.path(suite, "paper", "hypotheses.csv"))))
  at <- sprintf("hypotheses.csv:%d: ", n)
  line <- function(kind = "equivalence", metric = "ops_per_s", allocators = "jemalloc/mimalloc", direction = "", margin = "0.05",
                   kernel = "churn", filter = "threads<=15", under = "versions", role = "test", claim = "paper.parity") {
    paste(claim, role, kind, metric, allocators, direction, margin, kernel, "contention", filter, under, ",,,,", sep = ",")
  }
  expect_s3_class(claims_in(with_line(line(), "^paper.parity,test"), FEW)$hypotheses, "data.frame")
  refused(line(kind = "sameness"), paste0(at, "kind: unknown 'sameness'; expected one of ratio"))
  refused(line(metric = "speed"), paste0(at, "metric: unknown 'speed'"))
  refused(line(allocators = "jemalloc/best"), paste0(at, "allocators: unknown 'best'"))
  refused(line(allocators = "jemalloc"), paste0(at, "allocators: expected A/B"))
  refused(line(kernel = "churm"), paste0(at, "kernel: unknown 'churm'"))
  refused(line(margin = ""), paste0(at, "margin: a equivalence needs one"))
  refused(line(margin = "-1"), paste0(at, "margin: expected a number from 0 to 1"))
  refused(line(filter = "threads<15"), paste0(at, "filter: expected COLUMN=VALUE"))
  refused(line(filter = "threads<=abc"), paste0(at, "filter: expected a number after <=, not 'abc'"))
  refused(line(filter = "sweep=nowhere"), paste0(at, "filter: sweep: unknown 'nowhere'"))
  refused(sub(",contention,", ",contentoin,", line()), paste0(at, "sweeps: unknown 'contentoin'"))
  refused(line(margin = "1.5"), paste0(at, "margin: expected a number from 0 to 1"))
  refused(line(filter = "colour=3"), paste0(at, "filter: unknown 'colour'"))
  refused(line(under = "moon"), paste0(at, "under: unknown 'moon'"))
  refused(line(role = "veto"), paste0(at, "role: only arithmetic is a veto"))
  refused(line(role = "judge"), paste0(at, "role: unknown 'judge'"))
  refused(line(claim = "paper.none"), paste0(at, "claim: unknown 'paper.none'"))
  refused(line(role = "remark"), "the claim paper.parity has no line of role test")
  refused(line(), "has a test already, in .*hypotheses.csv", "^none")
  refused(line(kind = "ratio", claim = "paper.ops", allocators = "mimalloc/jemalloc", direction = "down"),
          "direction: down is not that of the published ratio", "^paper.ops,test")
  refused(line(kind = "bound", allocators = "mimalloc", direction = "up"), "direction: unknown 'up'")
  refused("paper.parity,test,arithmetic,,,,,,,,,1,=,1,,x", "arithmetic is a veto or a remark", "^paper.parity,test")
  refused("paper.parity,veto,arithmetic,,,,,,,,,1,~,1,,x", "relation: unknown '~'", "^none")
})

test_that("a damaged file of the paper is refused with its line", {
  dir <- local_folder()
  for (sub in c("paper", "kernels", "experiments", "allocators")) dir.create(file.path(dir, sub))
  file.copy(file.path(suite, "experiments", "schema.md"), file.path(dir, "experiments"))
  file.create(file.path(dir, "experiments", list.files(file.path(suite, "experiments"), "[.]sweep$")))
  file.create(file.path(dir, "kernels", paste0(c("churn", "anatomy", "fragment", names(PLANNED_KERNELS)), ".c")))
  file.copy(file.path(suite, "allocators", "registry.ini"), file.path(dir, "allocators"))
  names <- c("claims.csv", "claim_values.csv", "conditions.csv", "hypotheses.csv")
  whole <- function() file.copy(file.path(suite, "paper", names), file.path(dir, "paper"), overwrite = TRUE)
  refused <- function(name, damage, message) {
    whole()
    file <- file.path(dir, "paper", name)
    damage(file)
    expect_error(read_claims(file.path(dir, "paper")), paste0(name, message), class = "usage_error", fixed = TRUE)
  }
  edit <- function(change) function(file) writeLines(change(readLines(file)), file)
  swap <- function(old, new) edit(function(lines) sub(old, new, lines))
  whole()
  expect_equal(nrow(read_claims(file.path(dir, "paper"))$claims), nrow(claims$claims))
  for (name in names) {
    refused(name, function(file) writeLines(character(), file), ": empty file")
    refused(name, function(file) unlink(file), ": not found; it is part of the suite")
    refused(name, edit(function(lines) c(lines[1:2], "a,b", lines[-(1:2)])), ":3: 2 fields, expected")
    refused(name, edit(function(lines) c(lines[1], "", lines[-1])), ":2: 0 fields, expected")
    refused(name, edit(function(lines) c(lines[1], "\"a,b")), ":2: a quote is opened and not closed")
    refused(name, function(file) writeBin(c(charToRaw("a,b\n"), as.raw(0)), file), ":2: a NUL byte")
  }
  for (name in names[1:3]) {
    refused(name, edit(function(lines) c(lines[1:3], lines[3], lines[-(1:3)])), ":4: ")
  }
  refused("conditions.csv", swap("threads,64", "threads,abc"), ":2: value: threads: expected a number from 1 on, not 'abc'")
  refused("conditions.csv", swap("threads,64", "threads,"), ":2: value: empty")
  refused("conditions.csv", swap("threads,64", "threats,64"), ":2: key: unknown 'threats'")
  refused("conditions.csv", swap("contention paper,threads", "contention papers,threads"), ":2: source: unknown")
  refused("conditions.csv", swap("mimalloc,2.1.2", "mimalloc,new"), ":9: value: version.mimalloc: expected a version")
  refused("claim_values.csv", swap("glibc,1,4.12,", "glibc,1,NaN,"), ":2: low: expected a number, not 'NaN'")
  refused("claim_values.csv", swap("^paper.ops,glibc", "paper.oops,glibc"), ":2: id: unknown 'paper.oops'")
  # Each condition that a hypothesis names has to be there.
  lines <- readLines(file.path(suite, "paper", "conditions.csv"))
  for (gone in grep("connections|program", lines[-1], invert = TRUE, value = TRUE)) {
    key <- strsplit(gone, ",")[[1]]
    if (gone == "contention paper,version.glibc,2.39") next # in no pair of the contention paper
    whole()
    writeLines(setdiff(lines, gone), file.path(dir, "paper", "conditions.csv"))
    expect_error(read_claims(file.path(dir, "paper")), if (key[2] == "threads") "condition" else
                   paste0("under: conditions.csv has no ", key[2], " of ", key[1]), class = "usage_error", info = gone)
  }
})

# ---- rules, one by one: each can say yes and no ----

verdict_word <- function(answer) answer$verdict

test_that("an order is met, opposite or open", {
  expect_equal(verdict_word(verdict_order("up", interval_of(3, 1, 5))), "reproduced")
  expect_equal(verdict_word(verdict_order("down", interval_of(-3, -5, -1))), "reproduced")
  expect_match(verdict_order("up", interval_of(-3, -5, -1))$note, "the opposite order")
  expect_equal(verdict_word(verdict_order("up", interval_of(1, -1, 3))), "open")
  expect_equal(verdict_word(verdict_order("up", interval_of(0, 0, 0))), "not reproduced") # counts that are the same
})

test_that("an equivalence is met, refuted or open", {
  expect_equal(verdict_word(verdict_equivalence(0.02, interval_of(1.001, 0.99, 1.01))), "reproduced")
  expect_equal(verdict_word(verdict_equivalence(0.02, interval_of(1.05, 1.03, 1.07))), "not reproduced")
  expect_equal(verdict_word(verdict_equivalence(0.02, interval_of(0.95, 0.93, 0.97))), "not reproduced")
  open <- verdict_equivalence(0.02, interval_of(1.01, 0.99, 1.03))
  expect_equal(open$verdict, "open")
  expect_match(open$note, "the interval reaches beyond 2.0 %; more launches would tell", fixed = TRUE)
})

test_that("a bound is met, refuted or open, from both sides", {
  expect_equal(verdict_word(verdict_bound(0.99, "least", interval_of(0.995, 0.992, 0.998))), "reproduced")
  expect_equal(verdict_word(verdict_bound(0.99, "least", interval_of(0.98, 0.97, 0.985))), "not reproduced")
  expect_equal(verdict_word(verdict_bound(0.99, "least", interval_of(0.99, 0.98, 0.995))), "open")
  expect_equal(verdict_word(verdict_bound(5, "most", interval_of(3, 2, 4))), "reproduced")
  expect_equal(verdict_word(verdict_bound(5, "most", interval_of(7, 6, 8))), "not reproduced")
})

test_that("a count is asked of every launch", {
  expect_equal(verdict_word(verdict_count(0, c(0, 0))), "reproduced")
  expect_match(verdict_count(0, c(0, 2))$note, "0 and 2 instead of 0")
  expect_equal(verdict_word(verdict_count(0, NA_real_)), "not yet measured")
})

test_that("a decision rule is right, wrong or open on both sides of the share", {
  expect_equal(verdict_word(verdict_decision(0.1, 0.3, 0.02, interval_of(0.8, 0.7, 0.9))), "reproduced")
  expect_equal(verdict_word(verdict_decision(0.1, 0.05, 0.02, interval_of(1, 0.985, 1.1))), "reproduced")
  expect_match(verdict_decision(0.1, 0.05, 0.02, interval_of(0.8, 0.7, 0.9))$note, "^gains at a share of 5.0 %")
  expect_match(verdict_decision(0.1, 0.3, 0.02, interval_of(1, 0.985, 1.1))$note, "^does not gain at a share of 30 %")
  for (share in c(0.05, 0.3)) {
    expect_equal(verdict_word(verdict_decision(0.1, share, 0.02, interval_of(1, 0.9, 1.1))), "open")
  }
})

test_that("no rule says reproduced where a condition differs, and all of them where none does", {
  intervals <- list(interval_of(1.24, 1.2, 1.28), interval_of(1, 0.999, 1.001), interval_of(0.7, 0.6, 0.8),
                    interval_of(-1, -2, -0.5))
  rules <- function(i, ...) {
    list(verdict_ratio(1.24, i, ...), verdict_ratio(-1, i, ..., neutral = 0), verdict_order("down", i, ...),
         verdict_equivalence(0.02, i, ...), verdict_bound(1, "least", i, ...), verdict_bound(1, "most", i, ...),
         verdict_count(1, 1, ...), verdict_decision(0.1, 0.3, 0.02, i, ...))
  }
  words <- function(...) lapply(intervals, function(i) vapply(rules(i, ...), verdict_word, ""))
  expect_true(all(Reduce(`|`, lapply(words(), `==`, "reproduced"))))
  for (condition in c("oversubscribed: 64 threads on 2 CPUs", "reduced: 1 cycles", "on the simulated machine")) {
    expect_false("reproduced" %in% unlist(words(condition)))
  }
})

test_that("no rule has a verdict from fewer launches than an interval needs", {
  few <- interval_of(1.24, NA, NA, 4)
  for (answer in list(verdict_ratio(1.24, few), verdict_order("up", few), verdict_equivalence(0.02, few),
                      verdict_bound(1, "least", few), verdict_decision(0.1, 0.3, 0.02, few))) {
    expect_equal(answer$verdict, "not yet measured")
    expect_match(answer$note, "4 paired launches, fewer than 6")
  }
})

# ---- whole claims over rows ----

test_that("near parity over thread counts: equivalent in all of them, or not", {
  near <- function(ratio, ...) {
    pair_rows_of("churn", c("jemalloc", "mimalloc"), "ops_per_s", 1e7, ratio, size_min = 16, size_max = 65536,
                 size_dist = "loguniform", ...)
  }
  rows <- function(...) c(near(1.01, threads = 1, ...), near(0.99, threads = 15, cpus = 16, ...))
  full <- function(rows) {
    lapply(rows, function(row) {
      row$ops_per_thread <- 1e7
      row$ops <- 1e7 * row$threads
      row$allocator_version <- c(jemalloc = "5.3.0-0-gabc", mimalloc = "2.1.2")[[row$allocator]]
      row
    })
  }
  line <- line_of("paper.parity", full(rows()), sweep = "contention")
  expect_equal(line$verdict, "reproduced")
  expect_equal(line$method, "two one-sided exact sign tests")
  expect_length(strsplit(line$row_ids, " ")[[1]], 32)
  expect_true(all(startsWith(strsplit(line$row_ids, " ")[[1]], "contention/")))
  expect_match(line_of("paper.parity", rows(), sweep = "contention")$note, "reduced: 1,000,000 cycles")
  apart <- line_of("paper.parity", full(c(near(1.01, threads = 1), near(0.8, threads = 8, cpus = 8))), sweep = "contention")
  expect_equal(apart$verdict, "not reproduced")
  expect_match(apart$note, "depends on reading and setting, the weakest stands (threads 8); differs by more than 5.0 %",
               fixed = TRUE)
  open <- line_of("paper.parity", full(near(1.03, threads = 1, spread = 0.02)), sweep = "contention")
  expect_equal(open$verdict, "open")
  expect_match(open$note, "more launches would tell")
  # Cells with a CPU for every thread stand before those without, and 16 threads are none of the claim's.
  others <- c(near(0.5, threads = 8), near(0.5, threads = 16, cpus = 16))
  shadowed <- line_of("paper.parity", full(c(near(1.01, threads = 1), others)), sweep = "contention")
  expect_equal(shadowed$verdict, "reproduced")
  over <- line_of("paper.parity", full(near(1.01, threads = 8)), sweep = "contention")
  expect_equal(over$verdict, "direction only")
  expect_match(over$conditions, "oversubscribed: 8 threads on 4 CPUs")
})

test_that("what is not known of a row, or differs from what was published, is told and never reproduced", {
  full <- function(...) {
    rows <- pair_rows_of("churn", c("jemalloc", "mimalloc"), "ops_per_s", 1e7, 1.01, size_min = 16, size_max = 65536,
                         size_dist = "loguniform")
    given <- list(...)
    lapply(rows, function(row) {
      row$ops_per_thread <- row$ops <- 1e7
      row$allocator_version <- c(jemalloc = "5.3.0", mimalloc = "2.1.2")[[row$allocator]]
      row[names(given)] <- given
      row
    })
  }
  over <- function(...) line_of("paper.parity", full(...), sweep = "contention")
  expect_equal(over()$verdict, "reproduced")
  differs <- function(line, condition) {
    expect_equal(line$verdict, "direction only", info = condition)
    expect_match(line$conditions, condition, fixed = TRUE)
  }
  differs(over(allocator_version = ""), "jemalloc: version not known; mimalloc: version not known")
  for (name in c("oversubscribed", "size_min", "size_max", "size_dist", "ops")) {
    one <- stats::setNames(list(""), name)
    differs(do.call(over, one), paste0("not known: ", name))
  }
  differs(over(ops_per_thread = ""), "not known: ops_per_thread")
  differs(over(size_dist = "fixed"), "sizes fixed instead of loguniform, which is assumed: the source does not say")
  differs(over(ops = 5e6), "another number of operations was done than asked for")
  differs(over(steal_ratio = 0.2), "noisy: 20 % of the CPU time was stolen in a launch")
  one <- full()
  one[[3]]$allocator_version <- ""
  differs(line_of("paper.parity", one, sweep = "contention"), "jemalloc: version not known")
  rows <- read_rows(local_folder(), full(), "contention")$runs
  wanted <- source_conditions(claims, "contention paper")
  expect_equal(differing_conditions(rows, wanted, "thread", c("cycles", "sizes", "versions")), character())
  for (key in c("size_min", "cycles")) { # a condition that is not known differs
    expect_length(differing_conditions(rows, wanted[setdiff(names(wanted), key)], "thread", c("cycles", "sizes", "versions")), 1)
  }
})

anatomy_of <- function(atomics, allocator = "mimalloc", ...) {
  parts <- lapply(1:2, function(rep) {
    counts <- c(16, 7, 2, atomics, 5, 0.95, 17)
    synthetic_anatomy_row(run_columns(), sprintf("%016x", rep), allocator, 64, "warm", counts, rep = rep, ...)
  })
  list(rows = lapply(parts, `[[`, "row"), metrics = unlist(lapply(parts, `[[`, "metrics")))
}

test_that("counts and hit ratios of the simulated machine: met at best under another condition, refuted by one launch", {
  over <- function(id, parts) line_of(id, parts$rows, sweep = "fastpath-anatomy", metrics = parts$metrics)
  none <- over("paper.noatomics", anatomy_of(0))
  expect_equal(none$verdict, "direction only")
  expect_match(none$note, "the count agrees too, but on the simulated machine; .*of free: 0 count, direction only")
  expect_match(none$conditions, "on the simulated machine; mimalloc 1.0 instead of 2.1.2")
  expect_equal(over("paper.noatomics", anatomy_of(2))$verdict, "not reproduced")
  expect_equal(over("paper.noatomics", anatomy_of(0, "jemalloc"))$verdict, "not yet measured")
  hits <- over("paper.l1", anatomy_of(0))
  expect_equal(hits$verdict, "direction only")
  expect_equal(hits$value, 100 * (1 - 3 / 2000))
  expect_true(is.na(hits$low)) # two launches: no interval
  expect_equal(over("paper.l1", anatomy_of(0, l1d_miss = 100))$verdict, "not reproduced")
})

simulated_churn <- function(sharing, threads = 64, touch = "none", allocator = "mimalloc") {
  lapply(1:6, function(rep) {
    row <- synthetic_common(run_columns(), "coherence", "churn", allocator, threads, 64, rep, touch = touch, sim_mode = "weave",
                            sim_quantum = 1000, ops = 1e6, ops_per_thread = 1e6 / threads)
    row$counters <- "sim"
    row$sim_false_sharing <- sharing + rep
    row
  })
}

test_that("absence is a bound: false sharing of metadata above 32 threads, with what it is below", {
  clean <- line_of("paper.scaling", c(simulated_churn(10), simulated_churn(10, 8)), sweep = "coherence")
  expect_equal(clean$verdict, "direction only")
  expect_match(clean$note, "the same at 32 threads and fewer: 0.0000135 1/op, direction only", fixed = TRUE)
  expect_equal(line_of("paper.scaling", simulated_churn(5000), sweep = "coherence")$verdict, "not reproduced")
  expect_equal(line_of("paper.scaling", simulated_churn(10, touch = "page"), sweep = "coherence")$verdict, "not yet measured")
  expect_equal(line_of("paper.scaling", simulated_churn(10, 8), sweep = "coherence")$verdict, "not yet measured")
})

test_that("fragmentation is an order of differences, whatever the sign of the values", {
  over <- function(jemalloc, mimalloc) {
    rows <- pair_rows_of("fragment", c("jemalloc", "mimalloc"), "rss_peak_bytes", 1e8, 1)
    own <- with_metric(rows, "external_end_ratio", rep(c(jemalloc, mimalloc), 8))
    line_of("paper.frag", own$rows, sweep = "fragment", metrics = own$metrics)
  }
  below <- over(-0.01, 0.2)
  expect_equal(below$verdict, "direction only")
  expect_equal(below$value, -21)
  expect_match(below$note, "external fragmentation of jemalloc against the bound: -1.00 %, reproduced", fixed = TRUE)
  expect_equal(over(0.3, 0.2)$verdict, "not reproduced")
})

test_that("application kernels are found once they are there, and another program is a condition", {
  data <- claims_in()
  waits <- claim_line(nothing(), data, "parse.wall")
  expect_match(waits$note, "^no ndjson rows")
  wall <- function(ratio) line_of("parse.wall", pair_rows_of("ndjson", c("mimalloc", "glibc"), "wall_ns", 1e9, ratio), data)
  expect_equal(wall(0.66)$verdict, "direction only")
  expect_match(wall(0.66)$note, paste0("size agrees too, but mimalloc not built secure; reduced: 1,000,000 operations; glibc ",
                                      "1.0 instead of 2.39; mimalloc 1.0 where the source states no version; another ",
                                      "program than a parser in Rust"))
  expect_match(wall(0.9)$note, "^another size")
  expect_equal(wall(1.3)$verdict, "not reproduced")
  same <- line_of("parse.jemalloc", pair_rows_of("ndjson", c("jemalloc", "mimalloc"), "wall_ns", 1e9, 1.005), data)
  expect_match(same$note, "equal within 2.0 % too")
  store <- function(...) pair_rows_of("item_store", c("mimalloc", "glibc"), "rss_peak_bytes", 3e8, 1.2, ...)
  rss <- line_of("kv.rss", store(variant = "insert"), data)
  expect_match(rss$note, "the order agrees too")
  expect_equal(rss$unit, "MB")
  expect_equal(rss$value, 60, tolerance = 0.01)
  expect_equal(line_of("kv.rss", store(variant = "put"), data)$verdict, "not yet measured")
  own <- with_metric(pair_rows_of("ndjson", c("mimalloc", "glibc"), "wall_ns", 1e9, 1), "malloc_share", rep(c(0.069, 0.382), 8))
  share <- line_of("parse.share", own$rows, data, metrics = own$metrics)
  expect_equal(line_of("parse.wall", own$rows, data, metrics = own$metrics)$verdict, "not yet measured") # under a profiler
  expect_equal(share$value, -31.3)
  expect_match(share$note, "size agrees too")
})

test_that("linear growth is told from growth that is not", {
  data <- claims_in()
  over <- function(power) {
    rows <- list()
    for (n in c(1e5, 1e6, 2e6, 1e7)) for (rep in 1:8) for (allocator in c("mimalloc", "glibc")) {
      row <- synthetic_timed(plain_row(kernel = "ndjson", allocator = allocator, rep = rep, threads = 1), 1, n)
      row$wall_ns <- round(1e6 + 100 * n^power * (1 + 0.001 * (rep - 4.5)))
      rows <- c(rows, list(row))
    }
    line_of("parse.linear", rows, data)
  }
  expect_match(over(1)$note, "equal within 10 % too")
  expect_equal(over(1)$value, 1, tolerance = 0.01)
  expect_equal(over(1.2)$verdict, "not reproduced")
})

test_that("the L3 claim falls back on the simulated machine only where this one has no counters", {
  sim <- function(allocator, miss) {
    lapply(simulated_churn(1, touch = "page", allocator = allocator), function(row) {
      row$l3_access <- 1e5
      row$l3_miss <- miss + row$rep
      row$l3_miss_ratio <- row$l3_miss / 1e5
      row
    })
  }
  line <- line_of("paper.l3", c(sim("mimalloc", 4200), sim("jemalloc", 6800)), sweep = "coherence")
  expect_equal(line$verdict, "direction only")
  expect_match(line$conditions, "on the simulated machine")
  none <- line_of("paper.l3", pair_rows_of("churn", c("mimalloc", "jemalloc"), "ops_per_s", 1e7, 1), sweep = "paper")
  expect_equal(none$verdict, "not testable here")
  expect_match(none$note, "this machine has no hardware counters; it takes a machine that shows its hardware counters")
})

test_that("failed launches alone are told as such", {
  rows <- lapply(pair_rows_of("churn", c("mimalloc", "jemalloc"), "ops_per_s", 1e7, 1), function(row) {
    row$status <- "oom"
    row
  })
  line <- line_of("paper.ops", rows, sweep = "paper")
  expect_equal(line$verdict, "not yet measured")
  expect_match(line$note, "no launch ended well (16 oom)", fixed = TRUE)
})

test_that("the order of rows changes nothing", {
  results <- all_sweeps
  ledger <- claims_ledger(results, claims)
  for (part in c("runs", "simulated", "metrics")) {
    results[[part]] <- results[[part]][with_seed(1, sample(nrow(results[[part]]))), , drop = FALSE]
  }
  expect_equal(claims_ledger(results, claims), ledger)
  # Oversubscribed, simulated, reduced, other versions.
  expect_true(all(ledger$verdict[ledger$source == "contention paper"] != "reproduced"))
})

# ---- how it is shown ----

test_that("the ledger comes back from its file as it was written", {
  dir <- local_folder()
  ledger <- claims_ledger(nothing(), claims)
  ledger$value[1:3] <- c(1.23456, 0.5, 12)
  write_ledger(ledger, dir)
  expect_equal(read_ledger(dir), ledger, tolerance = 1e-5)
  lines <- readLines(file.path(dir, LEDGER_FILE))
  writeLines(sub(",not yet measured,", ",perhaps,", lines, fixed = TRUE), file.path(dir, LEDGER_FILE))
  expect_error(read_ledger(dir), "verdict: unknown word 'perhaps'", class = "usage_error")
})

test_that("the terminal's table fits 80 to 120 columns, names every claim and says what is missing", {
  ledger <- claims_ledger(all_sweeps, claims)
  for (width in c(80, 100, 120)) {
    lines <- ledger_text(ledger, width)
    expect_lte(max(nchar(lines)), width)
    expect_match(paste(lines, collapse = "\n"), "36 claims: ", fixed = TRUE)
    for (id in ledger$id) expect_true(any(startsWith(lines, paste0("  ", id, " "))))
  }
  missing <- lines[seq(which(lines == "Missing:"), length(lines))]
  expect_match(paste(missing, collapse = " "), "no item_store rows of variant=put .*kv.put.ops +kv.put.cpu")
  expect_equal(terminal_width("40"), 80)
  expect_equal(terminal_width("100"), 100)
  expect_equal(terminal_width("500"), 120)
  expect_equal(terminal_width(""), 80)
})

test_that("conditions that several claims of a source share are printed once, and only in the terminal", {
  ledger <- claims_ledger(nothing(), claims)[1:3, ]
  ledger$source <- c("s", "s", "t")
  ledger$value <- 1
  one <- "reduced: 5 s of load"
  ledger$conditions <- c(paste0(one, "; glibc 2.41; noisy"), paste0(one, "; glibc 2.41"), one)
  ledger$note <- c(paste0("size agrees too, but ", one, "; glibc 2.41; noisy; so in all"),
                   paste0("a; ours: direction only (another size; glibc 2.41; glibc 2.41.1; ", one, ")"), paste0("tie; ", one))
  lines <- ledger_text(ledger, 120)
  expect_true(all(c("  [a] reduced: 5 s of load", "  [b] glibc 2.41") %in% lines))
  said <- paste(lines, collapse = "\n")
  expect_match(said, "    size agrees too, but [a] [b]; noisy; so in all", fixed = TRUE)
  expect_match(said, "(another size; [b]; glibc 2.41.1; [a])", fixed = TRUE)
  expect_match(said, "    tie; reduced: 5 s of load", fixed = TRUE) # shared with no other claim of its source
  expect_equal(lengths(regmatches(said, gregexpr(one, said, fixed = TRUE))), 2)
})

test_that("an open claim has a word of its own in the counts, the README's block and the paper's table", {
  ledger <- claims_ledger(nothing(), claims)
  ledger[ledger$id == "http.mean", c("verdict", "note")] <- c("open", "the interval holds both; more launches would tell")
  ledger$value[ledger$id == "http.mean"] <- 1.12
  expect_match(verdict_counts(ledger), "^1 open, 1 contradicted by its own numbers")
  run <- data.frame(key = c("cpu", "cpus", "hypervisor", "launches", "ok", "preset", "commit", "last_launch"),
                    value = c("C", "2", "no", "9", "9", "quick", "0", "2026-01-01"))
  expect_true("| open | 1 | `http.mean` |" %in% readme_ledger(ledger, run))
  line <- grep("http.mean", table_ledger(ledger, claims)$lines, fixed = TRUE, value = TRUE)
  expect_match(line, "\\textbf{open} & the interval holds both; more launches would tell", fixed = TRUE)
  expect_false(any(grepl("http.mean", missing_reasons(ledger), fixed = TRUE)))
})

test_that("claims.R writes the file, prints the table, and ends with 2 where there is nothing to read", {
  dir <- local_folder()
  root <- local_folder()
  read_rows(root, list(plain_row()))
  ran <- run_analysis("claims.R", root, dir)
  expect_equal(ran$status, 0L)
  expect_match(ran$said, "paper.ops +not yet measured")
  expect_equal(read_ledger(dir)$id, claims$claims$id)
  file <- file.path(dir, LEDGER_FILE)
  broken <- local_folder()
  try(read_rows(broken, list(plain_row(cpus = ""))), silent = TRUE)
  failed <- run_analysis("claims.R", broken, dir)
  expect_equal(failed$status, 2L)
  expect_match(failed$said, "runs.csv:2: cpus: empty in an ok row$")
  expect_false(file.exists(file)) # nothing of the run before is left
  expect_equal(run_analysis("claims.R", file.path(root, "none"), dir)$status, 2L)
  expect_equal(run_analysis("reference.R", local_folder(), dir)$status, 2L)
})

test_that("the README's block and the committed reference run say the same, and of today's claims", {
  reference <- file.path(suite, "paper", "reference")
  ledger <- read_ledger(reference)
  run <- read_csv(file.path(reference, REFERENCE_FILE), REFERENCE_COLUMNS, text = TRUE)
  run$value[is.na(run$value)] <- ""
  readme <- readLines(file.path(suite, "README.md"))
  marks <- match(c("<!-- claims:begin -->", "<!-- claims:end -->"), readme)
  expect_false(anyNA(marks))
  expect_equal(readme[seq(marks[1] + 2, marks[2] - 2)], readme_ledger(ledger, run))
  # What does not hang on rows is that of today's claims and hypotheses: `make reference` brings an old run up to date.
  today <- claims_ledger(nothing(), claims)
  columns <- c("id", "source", "kind", "metric", "allocators", "unit", "arithmetic")
  expect_equal(ledger[columns], today[columns])
  expect_equal(ledger$published, today$published, tolerance = 1e-4)
  expect_match(run$value[run$key == "commit"], "^[0-9a-f]{12}")
})

test_that("the tables of the paper have every claim once", {
  ledger <- claims_ledger(nothing(), claims)
  lines <- c(table_verdicts(ledger, claims)$lines, table_ledger(ledger, claims)$lines)
  expect_length(grep("\\textbf{", lines, fixed = TRUE), nrow(claims$claims))
  arithmetic <- table_arithmetic(claims)$lines
  expect_length(grep("\\texttt{", arithmetic, fixed = TRUE), sum(claims$hypotheses$kind == "arithmetic"))
  expect_match(grep("decrease of 68", arithmetic, value = TRUE), "\\textbf{does not hold}", fixed = TRUE)
})
