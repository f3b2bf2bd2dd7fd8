# What differs between rows of ours and the conditions under which a number was published (paper/conditions.csv).

# With less CPU time each than this, more threads than CPUs hardly overlap: a thread is done within a few slices.
OVERLAP_MS <- 50
OPS_OFF <- 0.01    # by which operations done may be off those asked for
STEAL_MOST <- 0.05 # share of the CPU time that the hypervisor took, above which a launch is noisy
PUBLISHED_UNDER <- c("threads", "cycles", "sizes", "versions")

# Conditions of the applications that are parameters of their kernels: the parameter, and what is told where it differs. More
# of those of MORE_IS_FINE are no other condition.
PARAMETER_CONDITIONS <- c(connections = "connections", load_threads = "load threads", seconds = "s of load",
                          in_flight = "requests in flight", file_bytes = "bytes of file")
MORE_IS_FINE <- c("seconds", "file_bytes")

# Keys of conditions.csv besides version.ALLOCATOR; those of CONDITION_NUMBERS hold a number from 1 on. cycles are those of
# a thread or in total, by the reading; ops are operations (lines, requests) over all threads; ops_most are those of the
# largest of several sizes of input.
CONDITION_NUMBERS <- c("threads", "cycles", "ops", "ops_most", "size_min", "size_max", "cpus", names(PARAMETER_CONDITIONS))
CONDITION_KEYS <- c(CONDITION_NUMBERS, "size_dist", "program")
NOT_STATED <- "not stated" # the version of an allocator that a source names without one
# The keys that a word of HYPOTHESIS_UNDER stands for; versions stands for version.ALLOCATOR.
UNDER_KEYS <- c(list(threads = "threads", cycles = "cycles", sizes = c("size_min", "size_max", "size_dist"), cpus = "cpus",
                     ops = "ops", ops_most = "ops_most"),
                stats::setNames(as.list(names(PARAMETER_CONDITIONS)), names(PARAMETER_CONDITIONS)))

#' Read and check paper/conditions.csv.
#' @param sources of claims.csv
#' @param allocators that there are
#' @return data.frame source, key, value (text)
read_conditions <- function(file, sources, allocators) {
  data <- read_data(file, c("source", "key", "value"))
  refuse_lines(data, !data$source %in% sources, function(line) {
    paste0("source: unknown '", line$source, "'; expected one of those in claims.csv")
  })
  keys <- c(CONDITION_KEYS, paste0("version.", allocators))
  refuse_lines(data, !data$key %in% keys, function(line) {
    paste0("key: unknown '", line$key, "'; expected one of ", paste(CONDITION_KEYS, collapse = " "), " version.ALLOCATOR")
  })
  refuse_lines(data, is.na(data$value), function(line) paste0("value: empty; expected that of ", line$key))
  number <- suppressWarnings(as.numeric(data$value))
  refuse_lines(data, data$key %in% CONDITION_NUMBERS & !(is.finite(number) & number >= 1), function(line) {
    paste0("value: ", line$key, ": expected a number from 1 on, not '", line$value, "'")
  })
  version <- startsWith(data$key, "version.")
  refuse_lines(data, version & data$value != NOT_STATED & !grepl("^[0-9]+([.][0-9]+)*$", data$value), function(line) {
    paste0("value: ", line$key, ": expected a version as 2.1.2, or ", NOT_STATED, ", not '", line$value, "'")
  })
  refuse_lines(data, data$key == "size_dist" & !data$value %in% c("loguniform", "uniform", "fixed"), function(line) {
    paste0("value: size_dist: expected loguniform, uniform or fixed, not '", line$value, "'")
  })
  refuse_twice(data, c("source", "key"))
  data
}

#' The keys of conditions that bind a hypothesis.
under_keys <- function(h) {
  under <- words_of(h$under)
  c(unlist(UNDER_KEYS[intersect(under, names(UNDER_KEYS))], use.names = FALSE),
    if ("versions" %in% under) paste0("version.", words_of(gsub("/", " ", published_name(h$allocators), fixed = TRUE))))
}

#' The published conditions of a source as a named list.
source_conditions <- function(claims, source) {
  own <- claims$conditions[claims$conditions$source %in% source, ]
  stats::setNames(as.list(own$value), own$key)
}

#' What differs between measured rows and the published conditions.
#' @param rows ok rows of the cell that is compared
#' @param wanted named list by keys of conditions.csv
#' @param reading "thread" (cycles per thread) or "total"
#' @param under which of HYPOTHESIS_UNDER bind; more threads than CPUs, the simulated machine and another program always do
#' @return character: one phrase a difference
differing_conditions <- function(rows, wanted, reading = "thread", under = PUBLISHED_UNDER) {
  out <- character()
  # What is not known differs.
  add <- function(condition, text) if (!isFALSE(condition)) out <<- c(out, text)
  wanted_number <- function(key) if (is.null(wanted[[key]])) NA_real_ else as.numeric(wanted[[key]])
  binds <- function(key) key %in% under
  unknown <- function(columns) columns[vapply(columns, function(name) anyNA(rows[[name]]), TRUE)]
  lacking <- unknown(c("threads", "cpus", "oversubscribed", if (binds("cycles")) c("ops_per_thread", "ops"),
                       if (binds("sizes")) c("size_min", "size_max", "size_dist")))
  add(length(lacking) > 0, paste0("not known: ", paste(lacking, collapse = ", ")))
  add(any((rows$oversubscribed %in% 1 | rows$threads > rows$cpus) %in% TRUE),
      paste0("oversubscribed: ", plural(max(rows$threads), "thread"), " on ", plural(min(rows$cpus), "CPU")))
  each_ms <- stats::median((rows$cpu_user_ns + rows$cpu_sys_ns) / rows$threads, na.rm = TRUE) / 1e6
  add(any((rows$threads > rows$cpus) %in% TRUE) && is.finite(each_ms) && each_ms < OVERLAP_MS,
      paste0("largely one thread after another: ", number_text(each_ms), " ms of CPU time each"))
  add(binds("threads") && any(rows$threads != wanted_number("threads")),
      paste0(paste(sort(unique(rows$threads)), collapse = ", "), if (all(rows$threads == 1)) " thread" else " threads",
             " instead of ", wanted$threads))
  cycles <- if (reading == "total") rows$ops_per_thread * rows$threads else rows$ops_per_thread
  if (!anyNA(cycles)) {
    add(binds("cycles") && min(cycles) < 0.99 * wanted_number("cycles"),
        paste0("reduced: ", count_text(min(cycles)), " cycles"))
    asked <- rows$ops_per_thread * rows$threads
    add(binds("cycles") && any(abs(rows$ops - asked) > OPS_OFF * asked), "another number of operations was done than asked for")
  }
  add(binds("ops") && min(rows$ops) < (1 - OPS_OFF) * wanted_number("ops"),
      paste("reduced:", count_text(min(rows$ops)), "operations"))
  add(binds("ops_most") && max(rows$ops) < (1 - OPS_OFF) * wanted_number("ops_most"),
      paste("reduced: up to", count_text(max(rows$ops)), "operations"))
  for (name in intersect(names(PARAMETER_CONDITIONS), under)) out <- c(out, differing_parameter(rows, name, wanted_number(name)))
  other <- rows$size_min != wanted_number("size_min") | rows$size_max != wanted_number("size_max")
  add(binds("sizes") && any(other), "other sizes")
  spread <- setdiff(stats::na.omit(rows$size_dist), wanted$size_dist)
  add(binds("sizes") && length(spread) > 0,
      paste0("sizes ", and_list(spread), " instead of ", wanted$size_dist, ", which is assumed: the source does not say"))
  noise <- suppressWarnings(max(rows$steal_ratio, na.rm = TRUE))
  add(noise > STEAL_MOST, paste0("noisy: ", percent_text(noise), " of the CPU time was stolen in a launch"))
  add(binds("cpus") && any(rows$cpus != wanted_number("cpus")),
      paste0(plural(min(rows$cpus), "CPU"), " instead of ", wanted$cpus))
  add(any(is_simulated(rows)), "on the simulated machine")
  if (binds("versions")) out <- c(out, differing_versions(rows, wanted))
  add(!is.null(wanted$program), paste0("another program than ", wanted$program))
  out
}

#' "reduced: 50 connections instead of 500", of a parameter of an application's kernel.
differing_parameter <- function(rows, name, wanted) {
  have <- param_number(rows, name)
  if (anyNA(have) || is.na(wanted)) return(paste("not known:", name))
  if (all(have == wanted) || (name %in% MORE_IS_FINE && all(have >= wanted))) return(NULL)
  paste0(if (any(have < wanted)) "reduced: ", and_list(number_text(sort(unique(have)))), " ", PARAMETER_CONDITIONS[[name]],
         " instead of ", number_text(wanted))
}

#' "mimalloc 2.0.9 instead of 2.1.2" for each allocator of rows with another version than the published one.
differing_versions <- function(rows, wanted) {
  unlist(lapply(sort(unique(rows$allocator)), function(allocator) {
    version <- wanted[[paste0("version.", published_name(allocator))]]
    have <- unique(rows$allocator_version[rows$allocator == allocator])
    if (anyNA(have)) return(paste0(allocator, ": version not known"))
    if (version %in% NOT_STATED) {
      return(paste0(allocator, " ", and_list(short_version(have)), " where the source states no version"))
    }
    if (is.null(version) || all(version_agrees(have, version))) return(NULL)
    other <- have[!version_agrees(have, version)]
    paste0(allocator, " ", and_list(short_version(other)), " instead of ", version)
  }))
}

#' TRUE where a version text starts with the wanted version ("5.3.0-0-g54eaed1d" with "5.3.0").
version_agrees <- function(have, wanted) {
  have == wanted | startsWith(have, paste0(wanted, "-")) | startsWith(have, paste0(wanted, "."))
}

#' A version without its build suffix.
short_version <- function(version) sub("[-+_ ].*$", "", version)

#' Why a metric is empty on rows that are ok; NA where it is measured or there are no ok rows.
#' @param values of the metric
#' @param metrics of read_results, for what a kernel or a profiler says of a metric that it could not have
unmeasured_reason <- function(rows, column, values = rows[[column]], metrics = NULL) {
  ok <- rows$status %in% "ok"
  if (!any(ok) || any(is.finite(values[ok]))) return(NA_character_)
  rows <- rows[ok, , drop = FALSE]
  if (column %in% COUNTED_COLUMNS) {
    reason <- counters_reason(rows)
    return(if (is.na(reason)) "no cache counters" else shorten(reason, 120))
  }
  if (startsWith(column, "lat_")) {
    samples <- max(c(0, rows$lat_samples), na.rm = TRUE)
    return(paste0("too few latency samples a launch for this percentile (", count_text(samples), " at most)"))
  }
  own <- metrics$reason[metrics$name %in% column & metrics$key %in% rows$key & !is.na(metrics$reason)]
  if (length(own) > 0) shorten(own[1], 120) else "empty in every row"
}

# Metrics that only counters, of the hardware or of the simulated machine, can give.
COUNTED_COLUMNS <- c("l3_miss_ratio", "l1_hit_ratio", "sim_false_sharing_per_op")
