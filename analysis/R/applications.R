# The applications: ratios of each allocator to the C library's own, paired by launch, and the share of malloc and free.

# What the table's lines are of: a kernel and the sweep in which it is measured. Launches under a profiler tell no time.
APPLICATIONS <- utils::read.table(header = TRUE, sep = "|", strip.white = TRUE, text = "
  kernel       | sweep            | text
  ndjson       | ndjson           | NDJSON parser
  ndjson       | ndjson-musl      | NDJSON parser, static with musl
  file_hash    | file_hash        | hash of a file
  http_server  | http_server      | HTTP server
  http_server  | http_server-pool | HTTP server on a pool of its own
  http_server  | http_server-musl | HTTP server, static with musl
  http_foreign | http_foreign     | HTTP server of the system
  item_store   | item_store       | item store on PostgreSQL
  redis        | redis            | redis-server
")
APPLICATION_METRICS <- c(wall_per_op = "time", cpu_ns_per_op = "CPU time", rss_peak_bytes = "peak memory")
BASELINES <- c("glibc", "musl") # the C library's own: what others are compared with, where it is there
SHARE_METRICS <- c(malloc_share = "in malloc and free", libc_share = "in the C library")

#' Ok launches of an application, one cell a variant: the most operations with a CPU for every thread.
#' @param one row of APPLICATIONS
#' @param profiled launches under a profiler, or the others
application_rows <- function(results, one, profiled = FALSE) {
  rows <- ok_rows(results$runs)
  rows <- rows[rows$kernel == one$kernel & rows$sweep %in% one$sweep & rows$profiled == profiled, , drop = FALSE]
  variant <- ifelse(is.na(rows$variant), "", rows$variant)
  do.call(rbind, lapply(sort(unique(variant), method = "radix"), function(v) {
    own <- rows[variant == v, , drop = FALSE]
    if (any(own$threads <= own$cpus)) own <- own[own$threads <= own$cpus, , drop = FALSE]
    most <- own$ops_per_thread * own$threads
    if (!anyNA(most)) own <- own[most == max(most), , drop = FALSE]
    own <- own[own$threads == max(own$threads), , drop = FALSE]
    pick_slice(own)
  }))
}

#' The metrics of APPLICATION_METRICS as columns; an application's own value stands before that of the row.
with_application_metrics <- function(results, rows) {
  rows$wall_per_op <- rows$wall_ns / rows$ops
  for (name in c("cpu_ns_per_op", "rss_peak_bytes")) rows[[name]] <- metric_values(results, rows, name)
  rows
}

#' Every ratio to the baseline.
#' @return data.frame text (of the application and its variant), threads, metric, allocator, base, and of launch_ratio: value,
#'   low, high, launches, method, and `apart`: does it differ from 1 also where all of them hold together; NULL without rows
application_ratios <- function(results) {
  cells <- lapply(seq_len(nrow(APPLICATIONS)), function(i) {
    one <- APPLICATIONS[i, ]
    rows <- application_rows(results, one)
    base <- BASELINES[BASELINES %in% rows$allocator]
    if (length(base) == 0) return(NULL)
    base <- base[1]
    rows <- with_application_metrics(results, rows)
    variant <- ifelse(is.na(rows$variant), "", rows$variant)
    several <- expand.grid(allocator = setdiff(unique(rows$allocator), base), metric = names(APPLICATION_METRICS),
                           variant = unique(variant), stringsAsFactors = FALSE)
    lapply(seq_len(nrow(several)), function(k) {
      own <- rows[variant == several$variant[k], , drop = FALSE]
      list(text = paste0(one$text, if (length(unique(variant)) > 1) paste0(", ", several$variant[k])), threads = own$threads[1],
           over = any(own$threads > own$cpus), metric = several$metric[k], allocator = several$allocator[k], base = base,
           rows = own)
    })
  })
  cells <- unlist(cells, recursive = FALSE)
  ratio <- function(cell, together) allocator_ratio(cell$rows, cell$allocator, cell$base, cell$metric, together = together)
  each <- lapply(cells, ratio, together = 1)
  known <- vapply(each, function(one) one$launches > 0, NA)
  all <- lapply(cells, ratio, together = max(1, sum(known)))
  out <- do.call(rbind, Map(function(cell, one, together) {
    cbind(data.frame(cell[c("text", "threads", "over", "metric", "allocator", "base")]), one, apart = apart_from(together, 1))
  }, cells[known], each[known], all[known]))
  rownames(out) <- NULL
  out
}

#' Ratios to the C library's own allocator: a line an application and metric, a column an allocator.
table_applications <- function(results, registry) {
  ratios <- application_ratios(results)
  if (is.null(ratios)) {
    kernels <- unique(APPLICATIONS$kernel)
    return(list(reason = paste0("not measured here: ", why_no_rows(results$runs[results$runs$kernel %in% kernels, ],
                                                                   "the applications beside the C library's allocator")),
                launches = integer()))
  }
  allocators <- display_order(registry, unique(published_name(ratios$allocator)))
  lines <- unique(ratios[c("text", "threads", "over", "metric", "base")])
  body <- lapply(seq_len(nrow(lines)), function(i) {
    at <- merge_keep(ratios, lines[i, ])
    first <- i == 1 || lines$text[i] != lines$text[i - 1]
    c(if (first) tex_escape(lines$text[i]) else " ", if (first) paste0(lines$threads[i], if (lines$over[i]) "$^{*}$") else " ",
      APPLICATION_METRICS[[lines$metric[i]]],
      vapply(allocators, function(a) ratio_cells(at[published_name(at$allocator) == a, , drop = FALSE]), ""),
      launches_text(at$launches))
  })
  ends <- which(diff(match(lines$text, unique(lines$text))) != 0)
  head <- c("application", "threads", "", tex_escape(allocator_label(registry, allocators)), "n")
  list(lines = tabular(paste0(wrapped(0.16), "rl", strrep("r", length(allocators)), "r"), head, body, ends),
       launches = ratios$launches,
       caption = c(sprintf("To %s, of the same program. Time and CPU time are of an operation: a line, a file, a request.",
                           and_list(unique(tex_escape(allocator_label(registry, ratios$base))))),
                   if (any(grepl("-secure", ratios$allocator))) "Of two values the second is of a build in secure mode.",
                   together_sentence(ratios),
                   if (any(ratios$over)) "Asterisk: more threads than CPUs.",
                   sprintf("Paired ratios%s over %s.", with_intervals(ratios),
                           launches_phrase(ratios$launches, "pair of launches", "pairs of launches"))))
}

#' Rows that agree with one line in all of its columns.
merge_keep <- function(rows, line) rows[cell_key(rows, names(line)) %in% cell_key(line, names(line)), , drop = FALSE]

#' "0.92 [0.90, 0.94]", marked where it is apart; of an allocator in two builds both.
ratio_cells <- function(at) {
  at <- at[order(grepl("-secure", at$allocator)), , drop = FALSE]
  paste(sprintf("%s%s {\\footnotesize %s}", number_text(at$value), apart_mark(at$apart), interval_tex(at)), collapse = "; ")
}

#' Shares of CPU samples by application and allocator.
application_shares <- function(results) {
  rows <- ok_rows(results$runs)
  rows <- rows[rows$profiled & rows$kernel %in% APPLICATIONS$kernel, , drop = FALSE]
  cells <- unique(data.frame(kernel = rows$kernel, variant = ifelse(is.na(rows$variant), "", rows$variant),
                             allocator = rows$allocator))
  do.call(rbind, lapply(seq_len(nrow(cells)), function(i) {
    own <- pick_slice(rows[rows$kernel == cells$kernel[i] & ifelse(is.na(rows$variant), "", rows$variant) == cells$variant[i] &
                             rows$allocator == cells$allocator[i], , drop = FALSE])
    do.call(rbind, lapply(names(SHARE_METRICS), function(name) {
      cbind(cells[i, ], metric = name, launch_interval(own, metric_of(own, results$metrics, name)))
    }))
  }))
}

#' The share of malloc and free, and of the C library as a whole: a line an application, a column an allocator.
table_shares <- function(results, registry) {
  shares <- application_shares(results)
  shares <- shares[is.finite(shares$value), , drop = FALSE]
  if (is.null(shares) || nrow(shares) == 0) {
    profiled <- all_launches(results)
    profiled <- profiled[profiled$profiled %in% TRUE, , drop = FALSE]
    why <- unmeasured_reason(profiled, "malloc_share", metric_of(profiled, results$metrics, "malloc_share"), results$metrics)
    if (is.na(why)) why <- why_no_rows(profiled, "an application under a profiler")
    return(list(reason = paste0("not measured here: ", why), launches = integer()))
  }
  allocators <- display_order(registry, unique(shares$allocator))
  lines <- unique(shares[c("kernel", "variant", "metric")])
  lines <- lines[order(match(lines$kernel, APPLICATIONS$kernel), lines$variant), ]
  body <- lapply(seq_len(nrow(lines)), function(i) {
    at <- merge_keep(shares, lines[i, ])
    c(tex_escape(trimws(paste(lines$kernel[i], lines$variant[i]))), SHARE_METRICS[[lines$metric[i]]],
      vapply(allocators, function(a) {
        own <- at[at$allocator == a, , drop = FALSE]
        own[c("value", "low", "high")] <- 100 * own[c("value", "low", "high")]
        if (nrow(own) == 0) "" else value_cell(own)
      }, ""), launches_text(at$launches))
  })
  list(lines = tabular(paste0("ll", strrep("r", length(allocators)), "r"),
                       c("application", "\\%", tex_escape(allocator_label(registry, allocators)), "n"), body),
       launches = shares$launches,
       caption = c("Samples of CPU time, of launches under a profiler, which tell nothing of time.",
                   sprintf("Medians%s over %s.", with_intervals(shares), launches_phrase(shares$launches))))
}

# ---- prose ----

#' The paragraph on the applications: where an allocator gains most, where it does not matter, what it takes in memory.
application_macros <- function(results, registry) {
  ratios <- application_ratios(results)
  if (is.null(ratios)) {
    return(c(sayApplications = "None of the applications was measured in these data beside the C library's own allocator."))
  }
  said <- vapply(names(APPLICATION_METRICS), function(metric) {
    own <- ratios[ratios$metric == metric, , drop = FALSE]
    if (nrow(own) == 0) return("")
    told <- is.finite(own$low)
    less <- sum(own$high < 1, na.rm = TRUE)
    more <- sum(own$low > 1, na.rm = TRUE)
    best <- own[which.min(own$value), ]
    sprintf("Of %s of %s, %s below one, %s above and %s neither%s; the least is that of %s in the %s, %s.",
            plural(nrow(own), "ratio"), APPLICATION_METRICS[[metric]], are(less), are(more), are(sum(told) - less - more),
            if (all(told)) "" else sprintf(" (%s without an interval)", count_text(sum(!told))),
            allocator_name(registry, best$allocator), tex_escape(best$text), value_words(best, ""))
  }, "")
  c(sayApplications = paste(c(sprintf("The applications ran on %s.", plural(length(unique(ratios$text)), "workload")),
                              said[nzchar(said)], "Table~\\ref{tab:applications} has them all."), collapse = " "))
}

are <- function(n) paste(if (n == 0) "none" else count_text(n), if (n == 1) "is" else "are")
