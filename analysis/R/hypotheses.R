# Hypotheses: what each published claim asserts, in a form that a machine can test (paper/hypotheses.csv).
#
# A claim has exactly one line of role `test`, which decides, and any number of others: `veto` (arithmetic of the source;
# where it breaks the claim is contradicted by its own numbers) and `remark` (told in the note, decides nothing).
#
# kind         value of ours                    holds where
#   ratio        a / b, paired                    the published ratio lies in the interval
#   difference   a - b, paired                    the published difference lies in the interval
#   order        a - b, paired                    the interval lies on the side of `direction`
#   equivalence  a / b, paired                    two one-sided tests place it within `margin` of 1
#   bound        a, in the metric's unit          at least (`least`) or at most (`most`) the published value, give or take
#                                                 `margin`, in that unit
#   count        a, a whole number                every launch has the published number
#   linear       slope ratio between sizes        within `margin` of 1
#   decision     time of A over B by kernel       those of a share above the published one gain by more than `margin`, the others
#                                                 do not; times and shares are of different launches
#   arithmetic   left, relation, right            see arithmetic.R
#
# allocators   A/B for ratio, difference, order, equivalence and decision; else A, or several by blanks. Where one has no
#              launch that ended well, its stand-in is taken (STAND_INS), which is a condition that differs
# kernel       a kernel of the suite, or one that it will have (PLANNED_KERNELS)
# sweeps       folders or sweeps in order of preference; +NAME is looked at besides. Other sweeps of the suite ask something
#              else and are left alone; a sweep of the reader's own is looked at last
# filter       conditions on rows by blanks: COLUMN=VALUE, COLUMN<=N, COLUMN>=N; param.NAME for a kernel's parameter
# under        published conditions that bind: threads cycles sizes versions cpus, those of the applications (conditions.R);
#              sensitivity: without live set, lifetimes and touching varied there is no full verdict
# needs        what it takes where rows are missing and no sweep of this suite can make them
# words        what else to say (arithmetic: with {left} and {right})

HYPOTHESIS_COLUMNS <- c("claim", "role", "kind", "metric", "allocators", "direction", "margin", "kernel", "sweeps", "filter",
                        "under", "left", "relation", "right", "needs", "words")
HYPOTHESIS_ROLES <- c("test", "veto", "remark")
PAIRED_KINDS <- c("ratio", "difference", "order", "equivalence", "decision")
HYPOTHESIS_KINDS <- c(PAIRED_KINDS, "bound", "count", "linear", "arithmetic")
HYPOTHESIS_DIRECTIONS <- list(ratio = c("up", "down"), difference = c("up", "down"), order = c("up", "down"),
                              bound = c("least", "most"))
MARGIN_KINDS <- c("equivalence", "bound", "linear", "decision")
HYPOTHESIS_UNDER <- c("threads", "cycles", "sizes", "versions", "cpus", "ops", "ops_most", "connections", "load_threads",
                      "seconds", "in_flight", "file_bytes", "sensitivity")
# Application kernels to come, and what each runs.
PLANNED_KERNELS <- c(ndjson = "NDJSON parsing", file_hash = "the hash of a large file", http_server = "an HTTP server",
                     item_store = "an item store")
PLANNED_SWEEPS <- c("ndjson", "ndjson-share", "ndjson-musl", "file_hash", "http_server", "http_server-pool",
                    "http_server-musl", "item_store", "item_store-share")
# What claims compare and the registry may not have: musl's own allocator, those linked into a program of musl, and a build.
OTHER_ALLOCATORS <- c("musl", "musl-mimalloc", "musl-jemalloc", "mimalloc-secure")

# Of an allocator in the form that a source used: the form that is more often there, and what differs then.
STAND_INS <- utils::read.table(header = TRUE, sep = "|", strip.white = TRUE, text = "
  allocator       | instead  | words
  mimalloc-secure | mimalloc | mimalloc not built secure
  musl-mimalloc   | mimalloc | preloaded into a program of glibc instead of linked statically with musl
  musl-jemalloc   | jemalloc | preloaded into a program of glibc instead of linked statically with musl
")

#' What a source calls an allocator that has its own name here: "mimalloc" of "musl-mimalloc" and "mimalloc-secure".
#' @param text names, or a pair A/B
published_name <- function(text) gsub("-secure\\b", "", gsub("\\bmusl-", "", text))

# Metrics: `from` is a column of the rows (as recorded or derived here) or a metric in metrics.csv: of the kernel, or of the
# profiler, whose launches say nothing of time. A column or what is derived gives way to a metric of its name: that of an
# application's server, where the row is of server and load together.
CLAIM_METRICS <- utils::read.table(header = TRUE, sep = "|", strip.white = TRUE, comment.char = "", text = "
  metric                   | from    | scale | unit
  ops_per_s                | column  | 1e-6  | Mop/s
  wall_ns                  | column  | 1e-9  | s
  lat_p999_ns              | column  | 1     | ns
  l3_miss_ratio            | column  | 100   | %
  rss_overhead_bytes       | column  | 1e-6  | MB
  rss_peak_bytes           | column  | 1e-6  | MB
  faults_per_op            | column  | 1     | 1/op
  cpu_ns_per_op            | derived | 1e-3  | us
  l1_hit_ratio             | derived | 100   | %
  sim_false_sharing_per_op | derived | 1     | 1/op
  malloc_atomics           | kernel  | 1     | count
  free_atomics             | kernel  | 1     | count
  external_end_ratio       | kernel  | 100   | %
  malloc_share             | profile | 100   | %
  libc_share               | profile | 100   | %
  binary_added_kb          | kernel  | 1     | kB
  request_mean_ms          | kernel  | 1     | ms
  request_stdev_ms         | kernel  | 1     | ms
  request_p50_ms           | kernel  | 1     | ms
  request_p75_ms           | kernel  | 1     | ms
  request_p90_ms           | kernel  | 1     | ms
  request_p99_ms           | kernel  | 1     | ms
  request_max_ms           | kernel  | 1     | ms
")
DERIVED_METRICS <- list(
  cpu_ns_per_op = function(rows) (rows$cpu_user_ns + rows$cpu_sys_ns) / rows$ops,
  l1_hit_ratio = function(rows) 1 - rows$l1d_miss / rows$l1d_access,
  sim_false_sharing_per_op = function(rows) rows$sim_false_sharing / rows$ops
)

#' Values of a metric for rows, unscaled; NA where it was not measured.
metric_values <- function(results, rows, metric) {
  own <- metric_of(rows, results$metrics, metric)
  from <- CLAIM_METRICS$from[CLAIM_METRICS$metric == metric]
  if (!from %in% c("column", "derived")) return(own)
  ifelse(is.na(own), if (from == "column") rows[[metric]] else DERIVED_METRICS[[metric]](rows), own)
}

is_share <- function(metric) CLAIM_METRICS$from[CLAIM_METRICS$metric == metric] == "profile"

#' Of rows those that may tell of a metric: of a profiler's shares the launches under a profiler, of all else the others.
rows_for_metric <- function(rows, metric) rows[rows$profiled == is_share(metric), , drop = FALSE]

metric_scale <- function(metric) CLAIM_METRICS$scale[CLAIM_METRICS$metric == metric]
metric_unit <- function(metric) CLAIM_METRICS$unit[CLAIM_METRICS$metric == metric]

words_of <- function(text) if (is.na(text)) character() else strsplit(trimws(text), " +")[[1]]

FILTER_PATTERN <- "^([a-z0-9_.]+)(=|<=|>=)([A-Za-z0-9_.]+)$"

#' Rows that meet a filter.
filter_rows <- function(rows, filter) {
  for (term in words_of(filter)) {
    part <- regmatches(term, regexec(FILTER_PATTERN, term))[[1]]
    have <- if (startsWith(part[2], "param.")) param_number(rows, sub("^param[.]", "", part[2])) else rows[[part[2]]]
    keep <- switch(part[3], "=" = as.character(have) == part[4], "<=" = have <= as.numeric(part[4]),
                   ">=" = have >= as.numeric(part[4]))
    rows <- rows[keep %in% TRUE, , drop = FALSE]
  }
  rows
}

#' Read and check paper/hypotheses.csv.
#' @param dir the folder paper/
#' @param claims of read_claims
#' @param columns names of the columns of runs.csv
#' @param allocators sections of the registry
#' @param kernels names of the kernels that there are
#' @param sweeps names of the sweeps that there are
#' @return data.frame HYPOTHESIS_COLUMNS and `where` (file:line)
read_hypotheses <- function(dir, claims, columns, allocators, kernels, sweeps) {
  file <- file.path(dir, "hypotheses.csv")
  lines <- read_data(file, HYPOTHESIS_COLUMNS)
  lines$margin <- vapply(seq_len(nrow(lines)), function(i) {
    margin <- suppressWarnings(as.numeric(lines$margin[i]))
    most <- if (lines$kind[i] %in% "bound") Inf else 1 # a share of the value, but for a bound
    if (!is.na(lines$margin[i]) && !isTRUE(margin >= 0 && margin <= most && is.finite(margin))) {
      usage_error(lines$where[i], ": margin: expected a number from 0 ", if (is.finite(most)) "to 1" else "on", ", not '",
                  lines$margin[i], "'")
    }
    margin
  }, 0)
  for (i in seq_len(nrow(lines))) check_hypothesis(lines[i, ], claims, columns, allocators, kernels, sweeps)
  for (id in claims$claims$id) {
    tests <- lines[lines$claim == id & lines$role == "test", , drop = FALSE]
    if (nrow(tests) == 0) usage_error(file, ": the claim ", id, " has no line of role test")
    if (nrow(tests) > 1) usage_error(tests$where[2], ": the claim ", id, " has a test already, in ", tests$where[1])
  }
  lines
}

#' Refuse a line that cannot be tested.
check_hypothesis <- function(h, claims, columns, allocators, kernels, sweeps) {
  one_of <- function(what, have, wanted) {
    bad <- setdiff(have, wanted)
    if (length(bad) > 0) {
      usage_error(h$where, ": ", what, ": unknown '", bad[1], "'; expected one of ", paste(wanted, collapse = " "))
    }
  }
  one_of("claim", h$claim, claims$claims$id)
  one_of("role", h$role, HYPOTHESIS_ROLES)
  one_of("kind", h$kind, HYPOTHESIS_KINDS)
  if (h$kind == "arithmetic") {
    if (h$role == "test") usage_error(h$where, ": role: arithmetic is a veto or a remark, not a test of ours")
    one_of("relation", h$relation, RELATIONS)
    return(invisible(check_arithmetic(h, claims, claim_source(claims, h$claim))))
  }
  if (h$role == "veto") usage_error(h$where, ": role: only arithmetic is a veto")
  one_of("metric", h$metric, CLAIM_METRICS$metric)
  one_of("kernel", words_of(h$kernel), c(kernels, names(PLANNED_KERNELS)))
  one_of("under", words_of(h$under), HYPOTHESIS_UNDER)
  one_of("sweeps", sub("+", "", words_of(h$sweeps), fixed = TRUE), sweeps)
  paired <- h$kind %in% PAIRED_KINDS
  named <- if (paired) strsplit(h$allocators, "/", fixed = TRUE)[[1]] else words_of(h$allocators)
  if (paired && length(named) != 2 || length(named) == 0) {
    usage_error(h$where, ": allocators: expected ", if (paired) "A/B" else "names", ", not '", h$allocators, "'")
  }
  one_of("allocators", named, allocators)
  if (h$kind %in% names(HYPOTHESIS_DIRECTIONS)) one_of("direction", h$direction, HYPOTHESIS_DIRECTIONS[[h$kind]])
  if (h$kind %in% MARGIN_KINDS && is.na(h$margin)) usage_error(h$where, ": margin: a ", h$kind, " needs one")
  for (term in words_of(h$filter)) {
    part <- regmatches(term, regexec(FILTER_PATTERN, term))[[1]]
    if (length(part) == 0) usage_error(h$where, ": filter: expected COLUMN=VALUE, COLUMN<=N or COLUMN>=N, not '", term, "'")
    if (!startsWith(part[2], "param.")) one_of("filter", part[2], columns)
    if (part[3] != "=" && !is.finite(suppressWarnings(as.numeric(part[4])))) {
      usage_error(h$where, ": filter: expected a number after ", part[3], ", not '", part[4], "'")
    }
    if (part[2] == "sweep") one_of("filter: sweep", part[4], sweeps)
  }
  lacking <- setdiff(under_keys(h), names(source_conditions(claims, claim_source(claims, h$claim))))
  if (is.na(h$needs) && length(lacking) > 0) {
    usage_error(h$where, ": under: conditions.csv has no ", lacking[1], " of ", claim_source(claims, h$claim))
  }
  if (h$role == "test" && h$kind %in% c("ratio", "difference")) {
    published <- published_effect(claims, h)
    if (is.na(published)) usage_error(h$where, ": claim_values.csv has no values for ", h$allocators)
    if ((published > if (h$kind == "ratio") 1 else 0) != (h$direction == "up")) {
      usage_error(h$where, ": direction: ", h$direction, " is not that of the published ", h$kind, ", ", number_text(published))
    }
  }
  if (h$kind %in% c("bound", "count", "decision") && is.na(published_limit(claims, h))) {
    usage_error(h$where, ": claim_values.csv has no value for ", h$claim)
  }
}

claim_source <- function(claims, id) claims$claims$source[match(id, claims$claims$id)]

#' Middle of a claim's published values of an allocator: the median over its measurements.
published_middle <- function(claims, id, allocator) {
  own <- claims$values[claims$values$id == id & claims$values$allocator == allocator, , drop = FALSE]
  stats::median((own$low + own$high) / 2)
}

#' The published ratio or difference of a hypothesis; of an equivalence the published ratio, where there is one.
published_effect <- function(claims, h) {
  named <- published_name(h$allocators)
  pair <- strsplit(named, "/", fixed = TRUE)[[1]]
  direct <- published_middle(claims, h$claim, named)
  if (!is.na(direct)) return(direct)
  values <- vapply(pair, function(a) published_middle(claims, h$claim, a), 0)
  if (h$kind %in% c("difference", "order")) (values[[1]] - values[[2]]) / metric_scale(h$metric)
  else values[[1]] / values[[2]]
}

#' The published bound or count, in the metric's own unit.
published_limit <- function(claims, h) {
  own <- claims$values[claims$values$id == h$claim, , drop = FALSE]
  limit <- c(own$low, own$high)
  limit <- limit[is.finite(limit)]
  if (length(limit) == 0) NA_real_ else limit[1] / metric_scale(h$metric)
}
