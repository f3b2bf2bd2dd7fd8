# The benchmark of one allocator, the subject, against its rivals: rows into figures, each with interval, target and
# verdict. Nothing is dropped but what was not measured, and that is said.

# Registry sections of newer releases than the system's: shown, but not among the rivals of the main targets.
PEER_PATTERN <- "-(trixie|sid)(-|$)"
INSTRUCTION_GROUPS <- list(small = c(16, 64, 512), medium = c(4096, 32768), large = 262144)
GROUP_WORDS <- c(small = "up to 512 B", medium = "4 to 32 KiB", large = "at 256 KiB")
LOOPS <- c("pair", "lifo", "fifo")
HEAPS <- c(1, 300) # live blocks of the class that count for a target
FIGURE_COLUMNS <- c("id", "verdict", "value", "low", "high", "n", "unit", "target", "figure")

#' Read the targets: id, limit, rule.
read_targets <- function(file) read_csv(file, c("id", "limit", "rule"))

RULE_WORDS <- c(at_most = "at most", at_least = "at least")

#' Verdict on a value: met or missed only where the whole interval is on one side of the limit. A count has no noise and
#' needs no interval.
#' @param interval as of median_interval
#' @return text: "met", "missed", or "open" and why
verdict_of <- function(interval, limit, rule) {
  exact <- interval$method == "count"
  low <- if (exact) interval$value else interval$low
  high <- if (exact) interval$value else interval$high
  if (!rule %in% names(RULE_WORDS)) usage_error("targets: rule '", rule, "', expected at_most or at_least")
  if (is.na(low) || is.na(high)) return(paste0("open: n < ", MIN_LAUNCHES))
  if (if (rule == "at_most") high <= limit else low >= limit) return("met")
  if (if (rule == "at_most") low > limit else high < limit) return("missed")
  "open: the interval holds the limit"
}

TINY_VERDICT <- "tiny: shows only that it works"

#' Lines of a part of the benchmark, without verdicts where it was run in its smallest form.
#' @param form of PART.meta
judged_by_form <- function(lines, form) {
  if (identical(form, "tiny")) lines$verdict[grepl("^(met|missed|open)", lines$verdict)] <- TINY_VERDICT
  lines
}

#' One line of the table.
#' @param interval as of median_interval; launches 0 means not measured
#' @param reason why not, where it was not
figure_line <- function(id, figure, interval, unit, targets, reason = "no rows", target_id = id) {
  own <- targets[targets$id == target_id, , drop = FALSE]
  measured <- interval$launches > 0 && is.finite(interval$value)
  target <- if (nrow(own) == 0) "" else paste(RULE_WORDS[[own$rule]], number_text(own$limit))
  verdict <- if (!measured) paste0("not measured: ", without_folders(reason))
             else if (nrow(own) == 0) "" else verdict_of(interval, own$limit, own$rule)
  data.frame(id = id, figure = figure, value = if (measured) interval$value else NA, low = interval$low,
             high = interval$high, n = interval$launches, unit = unit, target = target, verdict = verdict)
}

#' A reason without the folders of this machine's paths.
without_folders <- function(text) gsub("/[^ ,;:]*/", "", text)

#' A count without noise.
counted <- function(value) {
  data.frame(value = value, low = NA_real_, high = NA_real_, launches = as.integer(is.finite(value)), method = "count")
}

no_interval <- function() median_interval(numeric())

# ---- instructions, system calls, page faults -----------------------------------------------------

#' Counts per pair from the raw counts of the loops.
#' @param rows of instructions.csv
pair_counts <- function(rows) {
  rows$instructions <- (rows$instructions_2 - rows$instructions_1) / rows$ops
  rows$syscalls <- rows$syscalls_2 / rows$ops / 2
  rows$faults <- rows$faults_2 / rows$ops / 2
  rows
}

first_reason <- function(rows, fallback) {
  given <- rows$reason[!is.na(rows$reason) & nzchar(rows$reason)]
  if (length(given) > 0) given[1] else fallback
}

#' The most of a column over rows, or not measured where any of them is missing.
most_line <- function(id, figure, rows, column, unit, targets, target_id = id) {
  whole <- nrow(rows) > 0 && all(is.finite(rows[[column]]))
  figure_line(id, figure, counted(if (whole) max(rows[[column]]) else NA), unit, targets,
              first_reason(rows, "not counted"), target_id)
}

#' Sizes that cost more than a factor of what half the size costs.
#' @return data.frame size, ratio, of every size whose half was counted too; largest ratio first
size_steps <- function(rows) {
  scan <- rows[rows$loop == "pair" & rows$live == 1 & is.finite(rows$instructions), , drop = FALSE]
  half <- match(scan$size / 2, scan$size)
  steps <- data.frame(size = scan$size, ratio = scan$instructions / scan$instructions[half])
  steps <- steps[!is.na(half), , drop = FALSE]
  steps[order(-steps$ratio), , drop = FALSE]
}

#' Lines on counts. Targets of the subject are those of tlfl; its unchecked variant has its own.
bench_instructions <- function(rows, subject, targets) {
  if (is.null(rows)) {
    return(figure_line("instructions", "instructions a pair", no_interval(), "", targets,
                       "instructions.csv is not there"))
  }
  rows <- pair_counts(rows)
  groups <- names(INSTRUCTION_GROUPS)
  lines <- list()
  unchecked <- "tlfl-unchecked"
  for (one in list(c(subject, "tlfl"), c(unchecked, unchecked))) {
    for (group in groups) for (loop in LOOPS) {
      id <- paste("instructions", one[2], group, sep = ".")
      own <- rows[rows$allocator == one[1] & rows$loop == loop & rows$live %in% HEAPS &
                    rows$size %in% INSTRUCTION_GROUPS[[group]], , drop = FALSE]
      figure <- paste0(one[1], ": instructions a pair, ", loop, ", ", GROUP_WORDS[[group]])
      lines <- c(lines, list(most_line(paste0(id, ".", loop), figure, own, "instructions", "", targets, id)))
    }
  }
  own <- rows[rows$allocator == subject & rows$live %in% HEAPS, , drop = FALSE]
  table_rows <- own[own$size %in% unlist(INSTRUCTION_GROUPS), , drop = FALSE]
  steps <- size_steps(rows[rows$allocator == subject, , drop = FALSE])
  enough <- nrow(steps) > length(unlist(INSTRUCTION_GROUPS))
  worst <- if (enough) steps$ratio[1] else NA
  lines <- c(lines, list(
    safety_line(rows, subject, unchecked, targets),
    most_line("syscalls", "system calls a pair, most of all loops and sizes", table_rows, "syscalls", "", targets),
    most_line("faults", "page faults a pair, most of all loops and sizes", table_rows, "faults", "", targets),
    figure_line("cliff", paste0("largest step from half the size, 8 B to 4 MiB",
                                if (enough) paste0(" (at ", count_text(steps$size[1]), " B)") else ""),
                counted(worst), "x", targets, first_reason(own, "the scan was not run"))))
  do.call(rbind, lines)
}

#' The price of the checks: the mean difference over small blocks.
safety_line <- function(rows, subject, unchecked, targets) {
  small <- rows[rows$live %in% HEAPS & rows$size %in% INSTRUCTION_GROUPS$small & rows$loop %in% LOOPS, , drop = FALSE]
  with <- small[small$allocator == subject, , drop = FALSE]
  without <- small[small$allocator == unchecked, , drop = FALSE]
  pair <- match(cell_key(with, c("loop", "size", "live")), cell_key(without, c("loop", "size", "live")))
  figure_line("safety", paste0("price of safety: ", subject, " less ", unchecked, ", instructions a pair up to 512 B"),
              counted(if (length(pair) > 0) mean(with$instructions - without$instructions[pair]) else NA), "", targets,
              first_reason(rows[rows$allocator == unchecked, , drop = FALSE], paste(unchecked, "was not counted")))
}

# ---- sweeps: ratios of the subject to its rivals -------------------------------------------------

#' Cells of a sweep: everything planned but the allocator.
bench_cells <- function(rows) cell_key(rows, c("threads", CELL_COLUMNS))

#' Log-ratios subject / rival of a column by cell, paired by repetition.
#' @return data.frame kernel, threads, confidence, and list columns `ratios` and `block`
cell_ratios <- function(rows, subject, rival, column) {
  rows <- rows[rows$allocator %in% c(subject, rival) & is.finite(rows[[column]]) & rows[[column]] > 0, , drop = FALSE]
  key <- bench_cells(rows)
  parts <- lapply(unique(key), function(one) {
    cell <- rows[key == one, , drop = FALSE]
    above <- cell[cell$allocator == subject, , drop = FALSE]
    below <- cell[cell$allocator == rival, , drop = FALSE]
    pairs <- pair_rows(above, below, "threads")
    out <- data.frame(kernel = cell$kernel[1], threads = cell$threads[1])
    above <- above[pairs$a, , drop = FALSE]
    out$confidence <- confidence_of(above)
    out$ratios <- list(log(above[[column]] / below[[column]][pairs$b]))
    out$block <- list(block_of(above))
    out
  })
  parts <- do.call(rbind, parts)
  if (is.null(parts)) return(NULL)
  parts[lengths(parts$ratios) > 0, , drop = FALSE]
}

#' Geometric mean of paired ratios: within a kernel over its cells, then over kernels, each of one weight.
geometric_mean <- function(cells) {
  if (is.null(cells) || nrow(cells) == 0) return(no_interval())
  weight <- 1 / table(cells$kernel)[cells$kernel] / length(unique(cells$kernel))
  interval <- combined_interval(cells$ratios, function(medians) Reduce(`+`, Map(`*`, medians, as.numeric(weight))),
                                max(cells$confidence), cells$block)
  interval[c("value", "low", "high")] <- exp(interval[c("value", "low", "high")])
  interval
}

#' Of rivals the one that the subject compares worst with: data.frame rival, and its interval.
best_rival <- function(rows, subject, rivals, column) {
  all <- lapply(rivals, function(rival) {
    cells <- cell_ratios(rows, subject, rival, column)
    cbind(rival = rival, geometric_mean(cells))
  })
  all <- do.call(rbind, all)
  all <- all[!is.null(all) & all$launches > 0, , drop = FALSE]
  if (is.null(all) || nrow(all) == 0) return(cbind(rival = NA, no_interval()))
  all[which.max(all$value), , drop = FALSE]
}

rival_words <- function(best) if (is.na(best$rival)) "to the best rival" else paste0("to the best rival (", best$rival, ")")

rivals_of <- function(rows, peers = FALSE) {
  names <- unique(rows$allocator)
  names <- names[!grepl("^tlfl", names) & names != "bump"]
  names[grepl(PEER_PATTERN, names) == peers]
}

#' Why an allocator has no ok rows.
rows_reason <- function(rows, allocator) {
  own <- rows[rows$allocator %in% allocator, , drop = FALSE]
  if (nrow(own) == 0) return(paste(allocator, "has no rows"))
  bad <- own[own$status != "ok", , drop = FALSE]
  if (nrow(bad) == 0) return("no pairs of launches")
  shorten(paste0(bad$status[1], ": ", bad$status_detail[1]), 160)
}

#' Lines on CPU and wall time, and on resident memory, of the sweep over all kernels.
#' @param rows all of the sweep's, failed ones included; NULL where it was not run
bench_cpu <- function(rows, subject, targets) {
  if (is.null(rows)) {
    return(figure_line("cpu", "CPU time an op, geometric mean", no_interval(), "x", targets, "the sweep cpu was not run"))
  }
  good <- with_costs(ok_rows(rows))
  work <- good[good$kernel != "null", , drop = FALSE]
  rivals <- setdiff(rivals_of(work), subject)
  lines <- list()
  for (cost in list(c("cpu", "CPU time an op"), c("wall", "wall time an op"))) {
    best <- best_rival(work, subject, rivals, paste0(cost[1], "_per_op"))
    figure <- paste0(cost[2], ", geometric mean of ", plural(length(unique(work$kernel)), "kernel"), ", ", rival_words(best))
    lines <- c(lines, list(figure_line(cost[1], figure, best, "x", targets, rows_reason(rows, subject))))
  }
  for (kernel in unique(work$kernel)) {
    best <- best_rival(work[work$kernel == kernel, , drop = FALSE], subject, rivals, "cpu_per_op")
    figure <- paste0("CPU time an op of ", kernel, ", ", rival_words(best))
    lines <- c(lines, list(figure_line(paste0("cpu.", kernel), figure, best, "x", targets,
                                       rows_reason(rows[rows$kernel == kernel, ], subject), "cpu.kernel")))
  }
  for (peer in setdiff(rivals_of(rows, peers = TRUE), subject)) {
    version <- unique(stats::na.omit(work$allocator_version[work$allocator == peer]))
    figure <- paste(c("CPU time an op, geometric mean, to", peer, version), collapse = " ")
    lines <- c(lines, list(figure_line(paste0("cpu.", peer), figure,
                                       geometric_mean(cell_ratios(work, subject, peer, "cpu_per_op")), "x", targets,
                                       rows_reason(rows, peer))))
  }
  for (rival in c("jemalloc", "glibc")) {
    cells <- cell_ratios(work, subject, rival, "rss_added")
    left_out <- length(unique(bench_cells(work))) - NROW(cells)
    figure <- paste0("peak resident memory less baseline, geometric mean, to ", rival,
                     if (left_out > 0) paste0(" (without ", plural(left_out, "cell"), " that added nothing)"))
    lines <- c(lines, list(figure_line(paste0("rss.", rival), figure, geometric_mean(cells), "x", targets,
                                       rows_reason(rows, rival))))
  }
  do.call(rbind, lines)
}

#' Costs an op. Memory is what the blocks and the allocator added: the peak less the baseline of the same launch.
with_costs <- function(rows) {
  rows$cpu_per_op <- (rows$cpu_user_ns + rows$cpu_sys_ns) / rows$ops
  rows$wall_per_op <- rows$wall_ns / rows$ops
  rows$rss_added <- rows$rss_peak_bytes - rows$rss_baseline_bytes
  rows
}

#' Lines on p99.9 by threads, each to the best rival.
bench_latency <- function(rows, subject, targets) {
  if (is.null(rows)) {
    return(figure_line("latency", "p99.9 of churn", no_interval(), "x", targets, "the sweep latency was not run"))
  }
  good <- ok_rows(rows)
  do.call(rbind, lapply(sort(unique(rows$threads)), function(threads) {
    own <- good[good$threads == threads, , drop = FALSE]
    best <- best_rival(own, subject, setdiff(unique(own$allocator), subject), "lat_p999_ns")
    figure <- paste0("p99.9 of malloc in churn, ", plural(threads, "thread"), ", ", rival_words(best))
    figure_line(paste0("latency.", threads), figure, best, "x", targets,
                if (nrow(own) == 0) rows_reason(rows, subject) else "too few samples for this quantile")
  }))
}

#' Lines on false sharing: shared to private, of the subject itself.
bench_sharing <- function(rows, subject, targets) {
  if (is.null(rows)) {
    return(figure_line("sharing", "false sharing", no_interval(), "x", targets, "the sweep sharing was not run"))
  }
  good <- with_costs(ok_rows(rows[rows$allocator == subject, , drop = FALSE]))
  good$object <- param_number(good, "object")
  cases <- expand.grid(object = c(8, 64), kernel = c("false_active", "false_passive"), stringsAsFactors = FALSE)
  do.call(rbind, lapply(seq_len(nrow(cases)), function(i) {
    own <- good[good$kernel == cases$kernel[i] & good$object %in% cases$object[i], , drop = FALSE]
    shared <- own[own$variant == "shared", , drop = FALSE]
    private <- own[own$variant == "private", , drop = FALSE]
    pairs <- pair_rows(shared, private, "threads")
    figure_line(paste("sharing", cases$kernel[i], cases$object[i], sep = "."),
                paste0(cases$kernel[i], ", ", cases$object[i], " B: CPU time an op to its private control"),
                launch_ratio(shared[pairs$a, , drop = FALSE], shared$cpu_per_op[pairs$a], private$cpu_per_op[pairs$b]),
                "x", targets, rows_reason(rows, subject), "sharing")
  }))
}

# ---- a program that does nothing, and threads without a CPU --------------------------------------

#' Lines on what preloading adds to a trivial process, paired with an empty library.
bench_trivial <- function(rows, subject, targets) {
  units <- c(rss_kib = "KiB", wall_us = "us", cpu_us = "us")
  words <- c(rss_kib = "resident memory", wall_us = "wall time", cpu_us = "CPU time")
  if (!is.null(rows)) rows$wall_us <- rows$wall_ns / 1000
  empty <- rows[rows$allocator %in% "empty", , drop = FALSE]
  own <- rows[rows$allocator %in% subject, , drop = FALSE]
  pair <- match(own$round, empty$round)
  do.call(rbind, lapply(names(units), function(column) {
    figure <- paste0("a program that does nothing: ", words[[column]], " more than with an empty library")
    figure_line(paste0("trivial.", column), figure,
                median_interval(own[[column]] - empty[[column]][pair]), units[[column]], targets,
                if (is.null(rows)) "trivial.csv is not there" else paste(subject, "was not launched"))
  }))
}

#' Operations per CPU-second at 64 threads relative to the stub's, beside the same at 2 threads.
bench_scaling <- function(rows, subject, targets) {
  reason <- "scaling.csv is not there"
  interval <- no_interval()
  if (!is.null(rows)) {
    own <- rows[rows$allocator == subject, , drop = FALSE]
    reason <- first_reason(own, paste(subject, "was not run"))
    rate <- function(form, threads) {
      cell <- own[own$form == form & own$threads == threads, , drop = FALSE]
      stats::setNames(cell$ops / cell$cpu_ns, cell$round)
    }
    rounds <- as.character(unique(own$round))
    relative <- function(threads) rate("alloc", threads)[rounds] / rate("stub", threads)[rounds]
    if (length(rounds) > 0) interval <- paired_ratio(relative(64), relative(2))
  }
  figure_line("scaling", "ops a CPU-second at 64 threads to 2 threads, each to the loop without an allocator", interval, "x",
              targets, reason)
}

# ---- the page ------------------------------------------------------------------------------------

#' A Markdown table.
markdown_table <- function(header, cells) {
  row <- function(x) paste0("| ", paste(gsub("|", "\\|", x, fixed = TRUE), collapse = " | "), " |")
  c(row(header), row(rep("---", length(header))), apply(cells, 1, row))
}

interval_plain <- function(lines) {
  ifelse(is.na(lines$value), "", ifelse(is.na(lines$low), ifelse(lines$n < 2, "", paste0("n < ", MIN_LAUNCHES)),
         paste0("[", bound_text(lines$low, lines), ", ", bound_text(lines$high, lines), "]")))
}

#' The figures with targets and verdicts.
figures_markdown <- function(lines) {
  value <- ifelse(is.na(lines$value), "", trimws(paste(number_text(lines$value), lines$unit)))
  markdown_table(c("figure", "value", "95 % interval", "n", "target", "verdict"),
                 cbind(lines$figure, value, interval_plain(lines), ifelse(lines$n == 0, "", lines$n), lines$target,
                       lines$verdict))
}

#' Counts by allocator, loop and size: with 300 live blocks, and of the subject with 0 and 1 too.
instructions_markdown <- function(rows, subject) {
  rows <- pair_counts(rows)
  sizes <- unlist(INSTRUCTION_GROUPS, use.names = FALSE)
  keep <- rows$size %in% sizes & is.finite(rows$instructions) & (rows$live == 300 | rows$allocator == subject)
  rows <- rows[keep, , drop = FALSE]
  if (nrow(rows) == 0) return(character())
  key <- unique(rows[c("allocator", "loop", "live")])
  cells <- t(vapply(seq_len(nrow(key)), function(i) {
    own <- merge(key[i, ], rows)
    counts <- own$instructions[match(sizes, own$size)]
    # The longer loop took fewer: what an allocator does once was in the shorter one.
    c(key$allocator[i], key$loop[i], key$live[i], ifelse(counts < 0, "not steady", sprintf("%.0f", counts)))
  }, rep("", 3 + length(sizes))))
  markdown_table(c("allocator", "loop", "live", paste(sizes, "B")), cells)
}

#' CPU time an op by kernel and threads: the subject's median, and its ratio to the best rival of that cell.
cpu_markdown <- function(rows, subject) {
  good <- with_costs(ok_rows(rows))
  work <- good[good$kernel != "null", , drop = FALSE]
  threads <- sort(unique(work$threads))
  rivals <- setdiff(rivals_of(work), subject)
  kernels <- unique(work$kernel)
  cells <- t(vapply(kernels, function(kernel) {
    c(kernel, vapply(threads, function(n) {
      own <- work[work$kernel == kernel & work$threads == n, , drop = FALSE]
      best <- best_rival(own, subject, rivals, "cpu_per_op")
      mine <- own$cpu_per_op[own$allocator == subject]
      if (best$launches == 0) return("")
      paste0(number_text(exp(mean(log(mine)))), " ns, ", number_text(best$value), " x ", best$rival)
    }, ""))
  }, rep("", 1 + length(threads))))
  null <- vapply(threads, function(n) {
    own <- good$cpu_per_op[good$kernel == "null" & good$threads == n]
    if (length(own) == 0) "" else paste(number_text(stats::median(own)), "ns")
  }, "")
  markdown_table(c("kernel", paste(threads, ifelse(threads == 1, "thread", "threads"))), rbind(cells, c("null", null)))
}

#' KEY VALUE lines of what a part was run from.
read_part_meta <- function(file) {
  lines <- readLines(file, warn = FALSE, encoding = "UTF-8")
  stats::setNames(as.list(sub("^[^ ]+ ", "", lines)), sub(" .*", "", lines))
}

#' One line a part: when, on what, of which commit.
provenance_markdown <- function(bench) {
  files <- sort(list.files(bench, "[.]meta$", full.names = TRUE))
  vapply(files, function(file) {
    meta <- read_part_meta(file)
    paste0("- ", sub("[.]meta$", "", basename(file)), ": commit ", meta$commit, "; ", meta$date, "; ", meta$processor, ", ",
           meta$cpus, " CPUs, ", meta$kernel, ", load ", meta$load, " at the start; ", meta$form)
  }, "", USE.NAMES = FALSE)
}

#' The whole page: figures, counts, CPU time by kernel, and where all of it comes from.
bench_page <- function(figures, instructions, cpu, subject, bench) {
  judged <- figures[nzchar(figures$target), , drop = FALSE]
  count <- function(pattern) sum(grepl(pattern, judged$verdict))
  tiny <- count("^tiny")
  c(paste0("Of ", nrow(judged), " targets ", count("^met"), " are met, ", count("^missed"), " missed, ", count("^open"),
           " open, ", count("^not measured"), " not measured",
           if (tiny > 0) paste0(", ", tiny, " of a tiny run without a verdict"),
           ". Met or missed needs the whole interval on one side of the target; else it is open. ",
           "Ratios are paired by launch, ", subject, " to the rival, and the best",
           " rival is the one that it compares worst with; intervals are 95 %; n is launches (of the cell with the fewest),",
           " and 1 for counts, which have no noise. A mean over kernels weighs each kernel alike."), "",
    figures_markdown(figures),
    if (!is.null(instructions)) c("", "Instructions a pair of malloc and free, loop and PLT included, by size:", "",
                                  instructions_markdown(instructions, subject)),
    if (!is.null(cpu)) c("", "CPU time an op, gross, and its ratio to the best rival of the cell; `null` is the loop alone:", "",
                         cpu_markdown(cpu, subject)),
    "", "From:", "", provenance_markdown(bench))
}

#' The figures for a terminal.
figures_text <- function(lines) {
  value <- ifelse(is.na(lines$value), "-", trimws(paste(number_text(lines$value), lines$unit)))
  sprintf("%-34s %12s %-20s %-16s %s", lines$id, value, interval_plain(lines), lines$target, lines$verdict)
}
