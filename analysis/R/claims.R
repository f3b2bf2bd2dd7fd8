# The ledger: every published claim, tested by its hypothesis (hypotheses.R) on the rows at hand, with a verdict (verdict.R).
# It is written as claims-verdicts.csv, from which the paper's tables, the README's summary and the terminal's table come.

LEDGER_COLUMNS <- c("id", "source", "kind", "metric", "allocators", "published", "verdict", "note", "value", "low", "high",
                    "unit", "launches", "method", "conditions", "arithmetic", "row_ids")
LEDGER_FILE <- "claims-verdicts.csv"

#' Read and check the claims data of the paper.
#' @param dir the folder paper/ of a suite: registry, kernels and columns lie beside it
#' @param results of read_results: sweeps that hypotheses may name besides the suite's own
#' @return list(claims, values, conditions, hypotheses, kernels, sweeps = names of those of the suite)
read_claims <- function(dir, results = NULL) {
  suite <- dirname(normalizePath(dir))
  registry <- read_registry(file.path(suite, "allocators", "registry.ini"))
  allocators <- c(registry$section, OTHER_ALLOCATORS)
  own <- read_data(file.path(dir, "claims.csv"), c("id", "source", "metric", "unit", "statement", "conditions"))
  refuse_lines(own, is.na(own$id) | is.na(own$source), function(line) "id and source: expected words")
  refuse_twice(own, "id")
  claims <- list(claims = own, values = read_values(file.path(dir, "claim_values.csv"), own, allocators),
                 conditions = read_conditions(file.path(dir, "conditions.csv"), own$source, allocators))
  claims$kernels <- basename(sub("[.]c$", "", Sys.glob(file.path(suite, c("kernels", "kernels/apps"), "*.c"))))
  columns <- read_contract(file.path(suite, "experiments", "schema.md"))[["runs.csv"]]$column
  claims$sweeps <- unique(c(sub("[.]sweep$", "", list.files(file.path(suite, "experiments"), "[.]sweep$")), PLANNED_SWEEPS))
  rows <- if (!is.null(results)) all_launches(results)
  claims$hypotheses <- read_hypotheses(dir, claims, columns, allocators, claims$kernels,
                                       unique(c(claims$sweeps, rows$sweep, rows$folder)))
  claims
}

#' Read and check paper/claim_values.csv.
#' @param claims of claims.csv
#' @param allocators that there are; "any" is one too, and A/B a ratio of two
#' @return data.frame with numbers, and low_text and high_text as they were printed
read_values <- function(file, claims, allocators) {
  values <- read_data(file, c("id", "allocator", "measurement", "low", "high"))
  refuse_lines(values, !values$id %in% claims$id, function(line) paste0("id: unknown '", line$id, "'"))
  named <- strsplit(values$allocator, "/", fixed = TRUE)
  refuse_lines(values, !vapply(named, function(names) all(names %in% c(allocators, "any")), TRUE),
               function(line) paste0("allocator: unknown '", line$allocator, "'"))
  refuse_twice(values, c("id", "allocator", "measurement"))
  for (name in c("low", "high")) {
    values[[paste0(name, "_text")]] <- values[[name]]
    values[[name]] <- data_number(values, name)
  }
  refuse_lines(values, is.na(values$low) & is.na(values$high), function(line) "low and high: expected a number")
  refuse_lines(values, !is.na(values$low) & !is.na(values$high) & values$low > values$high,
               function(line) "low: larger than high")
  refuse_lines(values, is.na(values$measurement), function(line) "measurement: expected a number from 1 on")
  values$measurement <- data_number(values, "measurement", 1)
  values
}

hypothesis_of <- function(claims, id) {
  claims$hypotheses[claims$hypotheses$claim == id & claims$hypotheses$role == "test", , drop = FALSE]
}
hypothesis_allocators <- function(h) words_of(gsub("/", " ", h$allocators, fixed = TRUE))
hypothesis_conditions <- function(claims, h) source_conditions(claims, claim_source(claims, h$claim))

# ---- which rows ----

#' Rows that a hypothesis is about: those of this machine, or of the simulated one where only that has the metric.
#' @param allocators wanted ones
#' @return rows of all statuses; zero rows where nothing was run
hypothesis_rows <- function(results, h, claims, allocators = hypothesis_allocators(h)) {
  measured <- function(rows) any(is.finite(metric_values(results, ok_rows(rows), h$metric)))
  rows <- planned_rows(results$runs, h, allocators, claims)
  if (measured(rows)) return(rows)
  simulated <- planned_rows(results$simulated, h, allocators, claims)
  if (nrow(rows) == 0 || measured(simulated)) simulated else rows
}

#' Of some launches those of the hypothesis's kernel, sweeps and filter; where the number of threads or of operations is a
#' condition, those of the number nearest to it.
planned_rows <- function(runs, h, allocators, claims) {
  wanted <- hypothesis_conditions(claims, h)
  sweeps <- words_of(h$sweeps)
  named <- sub("+", "", sweeps, fixed = TRUE)
  beside <- startsWith(sweeps, "+")
  runs <- filter_rows(runs[runs$allocator %in% allocators, , drop = FALSE], h$filter)
  if (h$kind != "decision") runs <- rows_for_metric(runs, h$metric)
  others <- if (length(named) > 0) setdiff(claims$sweeps, named)
  runs <- runs[!runs$sweep %in% others | runs$folder %in% named, , drop = FALSE]
  rows <- rows_of(runs, words_of(h$kernel), sweeps[!beside])
  more <- runs$kernel %in% words_of(h$kernel) & runs$sweep %in% named[beside]
  rows <- rbind(rows, runs[more & !runs$folder %in% rows$folder, , drop = FALSE])
  nearest <- function(key, number) {
    if (!key %in% words_of(h$under) || is.null(wanted[[key]]) || all(is.na(number))) return(seq_along(number))
    have <- if (any(rows$status %in% "ok" & !is.na(number))) number[rows$status %in% "ok"] else number
    which(number %in% have[which.min(abs(log(have / as.numeric(wanted[[key]]))))])
  }
  rows <- rows[nearest("threads", rows$threads), , drop = FALSE]
  rows[nearest("ops", rows$ops_per_thread * rows$threads), , drop = FALSE]
}

#' A hypothesis whose allocators have launches: as it stands, or with stand-ins for all of them.
#' @return h, with `differs`: what differs with stand-ins, "" without
with_stand_ins <- function(results, h, claims) {
  h$differs <- ""
  runs <- function(h) {
    rows <- ok_rows(planned_rows(results$runs, h, hypothesis_allocators(h), claims))
    all(hypothesis_allocators(h) %in% rows$allocator)
  }
  own <- STAND_INS[STAND_INS$allocator %in% hypothesis_allocators(h), , drop = FALSE]
  if (!is.na(h$needs) || nrow(own) == 0 || runs(h)) return(h)
  other <- h
  for (i in seq_len(nrow(own))) other$allocators <- sub(own$allocator[i], own$instead[i], other$allocators, fixed = TRUE)
  other$differs <- note_text(unique(own$words))
  if (runs(other)) other else h
}

# What may tell the cells of a hypothesis apart, for its note.
SETTING_COLUMNS <- c("kernel", "threads", "variant", "size_min", "heap_state", "live_blocks", "lifetime_dist", "touch")
SENSITIVITY_WORDS <- c(live_blocks = "live set", lifetime_dist = "lifetimes", touch = "touching")

#' What of the sensitivity was not varied in the rows, in words.
unvaried <- function(rows) {
  same <- vapply(names(SENSITIVITY_WORDS), function(name) length(unique(rows[[name]])) < 2, TRUE)
  unname(SENSITIVITY_WORDS[same])
}

#' "live_blocks 1000, touch line": what tells a row's cell from others among rows.
setting_text <- function(row, rows) {
  vary <- SETTING_COLUMNS[vapply(SETTING_COLUMNS, function(name) length(unique(rows[[name]])) > 1, TRUE)]
  vary <- vary[!is.na(row[vary])]
  value <- vapply(vary, function(name) as.character(row[[name]]), "")
  paste(c(if (is_simulated(row)) "simulated machine", paste(gsub("_", " ", vary), value)[seq_along(vary)]), collapse = ", ")
}

#' The cells of those rows: one a plan and reading of the cycle count; where there are cells with a CPU for every thread,
#' those alone (unless the number of threads is the claim's). The plan says which count is a total; without a plan the
#' smaller number of operations a thread is taken for the share of a total.
#' @return list of list(rows, reading, setting), most operations a thread first
hypothesis_cells <- function(rows, h) {
  if (nrow(rows) == 0) return(list())
  if (!"threads" %in% words_of(h$under) && any(ok_rows(rows)$threads <= ok_rows(rows)$cpus)) {
    rows <- rows[rows$threads <= rows$cpus, , drop = FALSE]
  }
  by <- switch(h$kind, linear = c("allocator", PAIR_COLUMNS[PAIR_COLUMNS != "work"]), decision = c("kernel", "variant"),
               PAIR_COLUMNS)
  key <- cell_key(rows, by)
  told <- any(grepl("in total$", rows$work))
  most <- max(rows$ops_per_thread)
  cells <- lapply(sort(unique(key), method = "radix"), function(one) {
    cell <- rows[key == one, , drop = FALSE]
    total <- grepl("in total$", cell$work[1]) || (!told && isTRUE(cell$ops_per_thread[1] < most) && cell$threads[1] > 1)
    list(rows = cell, reading = if (total) "total" else "thread", setting = setting_text(cell[1, ], rows))
  })
  cells[order(-vapply(cells, function(cell) cell$rows$ops_per_thread[1], 0))]
}

# ---- an interval a kind ----

PAIR_COLUMNS <- c("threads", setdiff(CELL_COLUMNS, "counters"))

#' Values of A and B of the launches that are pairs.
#' @return list(a, b, key_a, key_b, confidence, block = of the pairs)
paired_values <- function(results, rows, metric, pair) {
  above <- rows[rows$allocator == pair[1], , drop = FALSE]
  below <- rows[rows$allocator == pair[2], , drop = FALSE]
  pairs <- pair_rows(above, below, PAIR_COLUMNS)
  above <- above[pairs$a, , drop = FALSE]
  below <- below[pairs$b, , drop = FALSE]
  list(a = metric_values(results, above, metric), b = metric_values(results, below, metric), key_a = above$key,
       key_b = below$key, confidence = confidence_of(above), block = block_of(above, PAIR_COLUMNS))
}

#' A ratio paired by launch, or of the quantiles of the paired launches' merged histograms.
claim_ratio <- function(results, rows, metric, pair = PUBLISHED_PAIR) {
  values <- paired_values(results, rows, metric, pair)
  ratio <- paired_ratio(values$a, values$b, values$confidence, values$block)
  if (ratio$launches > 0 || !metric %in% names(LATENCY_P)) return(ratio)
  merged_interval(results, values$key_a, LATENCY_P[[metric]], values$key_b, values$confidence, values$block)
}

#' Slope of a metric between the two largest sizes of input over that between the two smallest; the intercept is free.
#' @param values of rows of one allocator
slope_ratio <- function(rows, values) {
  keep <- is.finite(values) & is.finite(rows$ops)
  sizes <- sort(unique(rows$ops[keep]))
  n <- length(sizes)
  if (n < 3) return(median_interval(numeric()))
  groups <- lapply(sizes[c(1, 2, n - 1, n)], function(size) {
    at <- which(keep & rows$ops == size)
    list(rows = rows[at, , drop = FALSE], x = values[at])
  })
  launch_combined(groups, function(v) {
    (v[[4]] - v[[3]]) / (sizes[n] - sizes[n - 1]) / ((v[[2]] - v[[1]]) / (sizes[2] - sizes[1]))
  })
}

#' The interval that two one-sided tests are.
equivalence_interval <- function(paired, margin) {
  tested <- equivalence(paired$a, paired$b, margin, 1 - paired$confidence, paired$block)
  tested$method <- if (is.na(tested$low)) "none" else tested$test
  tested
}

#' The interval of a hypothesis in a cell, in the metric's own unit.
#' @param rows ok rows of the cell
cell_interval <- function(results, h, rows) {
  pair <- hypothesis_allocators(h)
  values <- metric_values(results, rows, h$metric)
  paired <- function() paired_values(results, rows, h$metric, pair)
  unpaired <- function() {
    interval <- launch_interval(rows, values)
    interval$paired <- FALSE
    interval
  }
  switch(h$kind,
         ratio = claim_ratio(results, rows, h$metric, pair),
         difference = , order = do.call(paired_difference, paired()[c("a", "b", "confidence", "block")]),
         equivalence = equivalence_interval(paired(), h$margin),
         bound = , count = unpaired(),
         linear = slope_ratio(rows, values),
         decision = claim_ratio(results, rows_for_metric(rows, "ops_per_s"), "ops_per_s", rev(pair)))
}

#' Counts of the simulated machine are no samples of a clock: below an interval's number of launches their range decides, and
#' is not printed as an interval.
counted_range <- function(interval, rows, values) {
  values <- values[is.finite(values)]
  if (!is.na(interval$low) || length(values) == 0 || !all(is_simulated(rows))) return(interval)
  interval$low <- min(values)
  interval$high <- max(values)
  interval$method <- "every count"
  interval
}

#' A rule's verdict for a cell.
cell_verdict <- function(results, h, rows, interval, claims, conditions, reason, word) {
  values <- metric_values(results, rows, h$metric)
  published <- if (h$kind %in% PAIRED_KINDS) published_effect(claims, h)
  limit <- published_limit(claims, h)
  room <- if (h$kind == "bound") h$margin / metric_scale(h$metric) * c(least = -1, most = 1)[[h$direction]] else 0
  switch(h$kind,
         ratio = verdict_ratio(published, interval, conditions, reason, word),
         difference = verdict_ratio(published, interval, conditions, reason, word, neutral = 0),
         order = verdict_order(h$direction, interval, conditions, reason, word),
         equivalence = , linear = verdict_equivalence(h$margin, interval, conditions, reason, word),
         bound = verdict_bound(limit + room, h$direction, interval, conditions, reason, word),
         count = verdict_count(limit, values, conditions, reason, word),
         decision = verdict_decision(limit, share_under(values, rows, hypothesis_allocators(h)[2]), h$margin, interval,
                                     conditions, reason, word))
}

#' The median share of an allocator's launches under a profiler.
share_under <- function(values, rows, allocator) {
  stats::median(values[rows$allocator == allocator & rows$profiled], na.rm = TRUE)
}

#' One hypothesis in one cell.
#' @return data.frame of one row, value, low and high in the metric's printed unit
judge_cell <- function(results, h, cell, claims) {
  under <- words_of(h$under)
  rows <- ok_rows(cell$rows)
  rows <- rows[rows$allocator %in% hypothesis_allocators(h), , drop = FALSE]
  interval <- cell_interval(results, h, rows)
  wanted <- hypothesis_conditions(claims, h)
  conditions <- if (nrow(rows) > 0) c(h$differs[nzchar(h$differs)], differing_conditions(rows, wanted, cell$reading, under))
  if (startsWith(interval$method, "merged")) conditions <- c(conditions, "quantile of merged launches")
  reason <- if (interval$launches > 0 || h$kind == "decision") NA
            else unmeasured_reason(rows, h$metric, metric_values(results, rows, h$metric), results$metrics)
  word <- if (startsWith(h$metric, "lat_")) "not yet measured" else "not testable here"
  if (!is.na(reason) && h$metric %in% COUNTED_COLUMNS) reason <- paste0(reason, "; it takes ", COUNTED_TAKES)
  if (nrow(rows) == 0) reason <- NA
  values <- metric_values(results, rows, h$metric)
  counted <- if (h$kind %in% c("bound", "count")) counted_range(interval, rows, values) else interval
  verdict <- cell_verdict(results, h, rows, counted, claims, conditions, reason, word)
  scale <- if (h$kind %in% c("difference", "order", "bound", "count")) metric_scale(h$metric) else 1
  data.frame(claim = h$claim, reading = cell$reading, setting = cell$setting,
             published = published_printed(claims, h), value = interval$value * scale, low = interval$low * scale,
             high = interval$high * scale, launches = interval$launches,
             method = counted$method,
             verdict = verdict$verdict, note = verdict$note, conditions = paste(conditions, collapse = "; "))
}

COUNTED_TAKES <- "a machine that shows its hardware counters, or the simulated one (ak run --counters sim)"

#' What was published, as the ledger prints it beside ours: an effect, or a bound or count in the metric's unit.
published_printed <- function(claims, h) {
  switch(h$kind, linear = 1, bound = , count = published_limit(claims, h) * metric_scale(h$metric),
         decision = NA_real_, difference = , order = published_effect(claims, h) * metric_scale(h$metric),
         published_effect(claims, h))
}

#' The unit of value, low and high.
ledger_unit <- function(h) {
  switch(h$kind, ratio = , equivalence = , linear = , decision = "ratio", metric_unit(h$metric))
}

#' Judge a hypothesis in all its cells.
judge_cells <- function(results, h, cells, claims) {
  do.call(rbind, lapply(cells, function(cell) judge_cell(results, h, cell, claims)))
}

# ---- the verdict on a claim ----

#' Why there are no rows, and what a claim then is.
absent_verdict <- function(h, rows, claims) {
  if (!is.na(h$needs)) return(answer("not testable here", paste("it takes", h$needs)))
  if (nrow(rows) > 0) return(answer("not yet measured", paste0("no launch ended well (", status_counts(rows),
                                                             common_reason(rows), ")")))
  missing <- setdiff(words_of(h$kernel), claims$kernels)
  if (length(missing) > 0) {
    return(answer("not yet measured", paste0("waits for ", and_list(PLANNED_KERNELS[missing]), " (",
                                             paste(missing, collapse = " "), ": not written yet)")))
  }
  sweeps <- words_of(h$sweeps)
  answer("not yet measured", paste0("no ", and_list(words_of(h$kernel)), " rows",
                                    if (!is.na(h$filter)) paste0(" of ", paste(words_of(h$filter), collapse = ", ")),
                                    if (length(sweeps) > 0) paste0(" (sweep ", sub("+", "", sweeps[1], fixed = TRUE), ")")))
}

#' ": wrk is not installed", what most of the rows say that did not end well.
common_reason <- function(rows) {
  said <- rows$status_detail[!is.na(rows$status_detail)]
  if (length(said) > 0) paste0(": ", shorten(names(sort(-table(said)))[1], 120))
}

#' The verdict over all cells: the weakest.
#' @param own of judge_cells; NULL where there are none
#' @param absent the answer where there are none
#' @param fixed which of live set, lifetimes and touching bind and were not varied, in words
#' @return one row of own with verdict and note, and `depends`: do cells differ?
combine_cells <- function(own, h, claims, absent, fixed = character()) {
  if (is.null(own) || nrow(own) == 0) {
    return(data.frame(claim = h$claim, published = published_printed(claims, h), value = NA_real_, low = NA_real_,
                      high = NA_real_, launches = 0L, method = "none", verdict = absent$verdict, note = absent$note,
                      conditions = "", depends = NA))
  }
  measured <- own$verdict %in% MEASURED_VERDICTS | is.finite(own$low)
  other <- if (any(measured) && !all(measured)) setdiff(own$reading[!measured], own$reading[measured])
  rest <- if (any(measured)) sum(!measured) else 0
  if (any(measured)) own <- own[measured, , drop = FALSE]
  word <- weakest_verdict(own$verdict)
  shown <- own[own$verdict == word, , drop = FALSE][1, ]
  note <- shown$note
  if (any(measured) && length(fixed) > 0) {
    if (word == "reproduced") word <- "direction only"
    note <- note_text(note, paste("sensitivity to", and_list(fixed), "was not measured"))
  }
  depends <- length(unique(own$verdict)) > 1
  where <- if (nzchar(shown$setting)) paste0(" (", shown$setting, ")")
  if (depends) note <- note_text(paste0("depends on reading and setting, the weakest stands", where), note)
  else if (nrow(own) > 1) note <- note_text(note, paste0("so in all of ", nrow(own), " cells; the value is of one", where))
  if (length(other) > 0) note <- note_text(note, "not measured in the other reading")
  else if (rest > 0) note <- note_text(note, paste("not measured in", plural(rest, "further cell")))
  data.frame(shown[c("claim", "published", "value", "low", "high", "launches", "method")], verdict = word, note = note,
             conditions = shown$conditions, depends = depends)
}

#' Test one hypothesis.
#' @return list(cells, verdict = of combine_cells, rows = ok rows behind it)
test_hypothesis <- function(results, h, claims) {
  h <- with_stand_ins(results, h, claims)
  rows <- if (is.na(h$needs)) hypothesis_rows(results, h, claims) else results$runs[0, , drop = FALSE]
  cells <- if (any(rows$status %in% "ok")) hypothesis_cells(rows, h) else list()
  own <- judge_cells(results, h, cells, claims)
  fixed <- if ("sensitivity" %in% words_of(h$under)) unvaried(rows) else character()
  used <- do.call(rbind, lapply(cells, function(cell) ok_rows(cell$rows)))
  list(cells = own, verdict = combine_cells(own, h, claims, absent_verdict(h, rows, claims), fixed),
       rows = if (is.null(used)) rows[0, , drop = FALSE] else used)
}

#' The sources' own arithmetic on a claim.
#' @return list(text, broken = text of the vetoes that break)
claim_arithmetic <- function(claims, id) {
  lines <- claims$hypotheses[claims$hypotheses$claim == id & claims$hypotheses$kind == "arithmetic", , drop = FALSE]
  checks <- lapply(seq_len(nrow(lines)), function(i) check_arithmetic(lines[i, ], claims, claim_source(claims, id)))
  text <- vapply(checks, `[[`, "", "text")
  breaks <- vapply(checks, `[[`, "", "outcome") == "breaks"
  list(text = text, broken = text[breaks & lines$role == "veto"])
}

#' What remarks of ours say: "of free: 2 count, not reproduced". A value is told only where a verdict stands on it.
claim_remarks <- function(results, claims, id) {
  lines <- claims$hypotheses[claims$hypotheses$claim == id & claims$hypotheses$role == "remark" &
                               claims$hypotheses$kind != "arithmetic", , drop = FALSE]
  vapply(seq_len(nrow(lines)), function(i) {
    tested <- test_hypothesis(results, lines[i, ], claims)$verdict
    if (!is.finite(tested$value)) return("")
    value <- if (tested$verdict == "open") paste0("[", number_text(tested$low), ", ", number_text(tested$high), "]")
             else number_text(tested$value)
    paste0(lines$words[i], ": ", if (tested$verdict %in% MEASURED_VERDICTS) paste0(value, " ", ledger_unit(lines[i, ]), ", "),
           tested$verdict)
  }, "")
}

DISTURBED <- "^window[0-9]+_disturbed$" # metrics: 1 where other work (steal, load) was in a window of the launch

#' "2 of 48 windows disturbed (steal, other programs), none left out"; NULL where none was.
disturbed_text <- function(results, rows) {
  marked <- results$metrics[grepl(DISTURBED, results$metrics$name) & results$metrics$key %in% rows$key, , drop = FALSE]
  hit <- sum(suppressWarnings(as.numeric(marked$value)) > 0, na.rm = TRUE)
  if (hit == 0) return(NULL)
  paste0(count_text(hit), " of ", plural(nrow(marked), "window"), " disturbed (steal, other programs), none left out")
}

#' One line of the ledger.
claim_line <- function(results, claims, id) {
  h <- hypothesis_of(claims, id)
  tested <- test_hypothesis(results, h, claims)
  verdict <- tested$verdict
  arithmetic <- claim_arithmetic(claims, id)
  note <- note_text(verdict$note, disturbed_text(results, tested$rows), h$words, claim_remarks(results, claims, id))
  word <- verdict$verdict
  if (length(arithmetic$broken) > 0) {
    note <- note_text(arithmetic$broken, paste0("ours: ", word, if (nzchar(note)) paste0(" (", note, ")")))
    word <- "contradicted by its own numbers"
  }
  data.frame(id = id, source = claim_source(claims, id), kind = h$kind, metric = h$metric, allocators = h$allocators,
             published = verdict$published, verdict = word, note = note, value = verdict$value, low = verdict$low,
             high = verdict$high, unit = ledger_unit(h), launches = verdict$launches, method = verdict$method,
             conditions = verdict$conditions, arithmetic = paste(arithmetic$text, collapse = "; "),
             row_ids = paste(sort(unique(tested$rows$key), method = "radix"), collapse = " "))
}

#' The ledger: a line a claim, in the order of claims.csv.
#' @return data.frame LEDGER_COLUMNS; low and high are empty where there is no interval
claims_ledger <- function(results, claims) {
  do.call(rbind, lapply(claims$claims$id, function(id) claim_line(results, claims, id)))
}

write_ledger <- function(ledger, out) write_csv(ledger, LEDGER_COLUMNS, file.path(out, LEDGER_FILE))

#' Read what write_ledger wrote.
read_ledger <- function(dir) {
  ledger <- read_csv(file.path(dir, LEDGER_FILE), LEDGER_COLUMNS, text = TRUE)
  for (name in c("published", "value", "low", "high", "launches")) ledger[[name]] <- as.numeric(ledger[[name]])
  strange <- setdiff(ledger$verdict, VERDICTS)
  if (length(strange) > 0) usage_error(file.path(dir, LEDGER_FILE), ": verdict: unknown word '", strange[1], "'")
  for (name in c("note", "conditions", "arithmetic", "row_ids")) ledger[[name]][is.na(ledger[[name]])] <- ""
  ledger
}
