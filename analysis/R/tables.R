# The paper's tables as LaTeX tabulars. Each table_NAME returns list(lines, launches, caption = the sentences after its
# title) or list(reason, launches).

#' A booktabs tabular.
#' @param align column letters
#' @param head character: LaTeX of the header cells
#' @param body list of character vectors: LaTeX of each row's cells
#' @param rules row numbers after which to leave a small gap
tabular <- function(align, head, body, rules = integer()) {
  rows <- vapply(body, function(cells) {
    cells[is.na(cells) | cells == ""] <- "--"
    paste(paste(cells, collapse = " & "), "\\\\")
  }, "")
  if (length(rules) > 0) rows[rules] <- paste(rows[rules], "\\addlinespace")
  c(sprintf("\\begin{tabular}{%s}", align), "\\toprule", paste(paste(head, collapse = " & "), "\\\\"), "\\midrule",
    rows, "\\bottomrule", "\\end{tabular}")
}

#' A cell that wraps.
wrapped <- function(width) sprintf(">{\\raggedright\\arraybackslash}p{%s\\linewidth}", width)

#' What the marks in a table mean, for its caption: only the marks that stand in it.
mark_notes <- function(lines) {
  has <- function(mark) any(grepl(mark, lines, fixed = TRUE))
  c(if (has("dagger")) "Dagger: quantile of the launches' merged histograms, for want of samples in each.",
    if (has("^{*}")) "Asterisk: more threads than CPUs.",
    if (has("$\\le$")) sprintf("$\\le$: below %d times the clock's overhead.", OVERHEAD_FACTOR))
}

#' "Medians and intervals over n = 6 launches a cell."
medians_over <- function(launches, lines, what = "") {
  if (length(launches) == 0 || all(launches %in% c(0, NA))) return("No launch of ours stands beside them.")
  sprintf("Medians%s over %s%s.", if (any(grepl("[0-9], .*\\]", lines))) " and intervals" else "", launches_phrase(launches),
          what)
}

INTERVAL_HEAD <- paste0(100 * CONFIDENCE, "\\,\\% interval")
READING_TEXT <- c(thread = "cycles per thread", total = "cycles in total")

#' Our values of a published metric in one cell of the plan, in the reading's unit.
#' @return from median_interval, scaled; throughput in total over the threads
our_value <- function(results, cell, allocator, metric) {
  rows <- ok_rows(cell$rows)
  interval <- latency_interval(results, rows[rows$allocator == allocator, , drop = FALSE], metric$column)
  interval[c("value", "low", "high")] <- interval[c("value", "low", "high")] * metric$scale
  interval
}

#' The published table beside ours: a row a metric, reading and allocator.
table_published <- function(results, comparison, claims, registry) {
  cells <- comparison$cells
  if (length(cells) == 0) cells <- list(list(rows = comparison$rows, reading = "thread", setting = ""))
  fullest <- which.max(vapply(cells, function(cell) nrow(cell$rows), 0L))
  same <- vapply(cells, `[[`, "", "setting") == cells[[fullest]]$setting
  cells <- c(cells[same], cells[!same])
  first <- cells[!duplicated(vapply(cells, `[[`, "", "reading"))]
  body <- list()
  launches <- integer()
  rules <- integer()
  for (cell in first) {
    if (length(cells) > 1) body <- c(body, list(cell_title(cell)))
    for (i in seq_len(nrow(PUBLISHED_METRICS))) {
      metric <- PUBLISHED_METRICS[i, ]
      for (allocator in PUBLISHED_ALLOCATORS) {
        rows <- cell$rows[cell$rows$allocator %in% allocator, , drop = FALSE]
        interval <- our_value(results, cell, allocator, metric)
        launches <- c(launches, interval$launches)
        body <- c(body, list(published_line(metric, allocator, interval, rows, claims, registry)))
      }
      rules <- c(rules, length(body))
    }
  }
  head <- c("metric", "allocator", "published", "ours", INTERVAL_HEAD, "n")
  lines <- tabular("llrrrr", head, body, rules[-length(rules)])
  list(lines = lines, launches = launches, caption = c(
    if (any(launches > 0)) paste("Throughput stands in total and per thread, since the source does not say which it means;",
                                 "intervals are of the total."),
    medians_over(launches, lines, " a cell"), mark_notes(lines)))
}

#' A line that names a cell: its reading and setting.
cell_title <- function(cell) {
  words <- c(READING_TEXT[[cell$reading]], tex_escape(cell$setting))
  sprintf("\\multicolumn{6}{l}{\\emph{%s}}", paste(words[nzchar(words)], collapse = "; "))
}

#' One row of that table.
published_line <- function(metric, allocator, interval, rows, claims, registry) {
  first <- allocator == PUBLISHED_ALLOCATORS[1]
  name <- if (first) sprintf("%s, %s", metric$metric, tex_escape(metric$unit)) else " "
  overhead <- if (nrow(rows) > 0) stats::median(ok_rows(rows)$clock_overhead_ns, na.rm = TRUE) else NA
  ours <- if (is.na(interval$value)) empty_cell(rows, metric$column)
          else if (metric$claim == "paper.p999") latency_tex(interval$value, overhead) else tex_number(interval$value)
  if (metric$claim == "paper.ops" && is.finite(interval$value)) {
    ours <- sprintf("%s total, %s a thread", ours, number_text(interval$value / rows$threads[1]))
  }
  c(name, tex_escape(allocator_label(registry, allocator)),
    published_text(published_value(claims, metric$claim, allocator)), paste0(ours, merged_mark(interval)), interval_tex(interval),
    if (interval$launches > 0) interval$launches else "")
}

#' A dagger on quantiles of merged launches.
merged_mark <- function(interval) if (interval$method %in% "merged") "$^{\\dagger}$" else ""

#' What stands where there is no number.
empty_cell <- function(rows, column) {
  if (nrow(rows) == 0) return("not run")
  if (nrow(ok_rows(rows)) == 0) return(tex_escape(status_counts(rows)))
  if (is.na(unmeasured_reason(rows, column))) "" else "not measured"
}

#' The same ratios by live set (and lifetimes, touching): what the verdicts rest on.
table_sensitivity <- function(comparison) {
  details <- comparison$details
  if (!comparison$several) {
    return(list(reason = "not measured here: the data have one setting only", launches = integer()))
  }
  keys <- unique(details[c("reading", "setting")])
  body <- lapply(seq_len(nrow(keys)), function(i) {
    own <- details[details$reading == keys$reading[i] & details$setting == keys$setting[i], ]
    own <- own[match(PUBLISHED_METRICS$claim, own$claim), ]
    c(READING_TEXT[[keys$reading[i]]], tex_escape(keys$setting[i]),
      ifelse(is.finite(own$value), paste(number_text(own$value), interval_tex(own)), "--"))
  })
  list(lines = tabular(paste0("l", wrapped(0.18), "rrrr"), c("reading", "setting", PUBLISHED_METRICS$metric), body),
       launches = details$launches,
       caption = paste0("Each ratio: ", launches_phrase(details$launches, "paired launch", "paired launches"), "."))
}

LATENCY_COLUMNS <- c("lat_p50_ns", "lat_p99_ns", "lat_p999_ns", "lat_p9999_ns")

#' Latency quantiles by allocator and thread count, upper bounds marked, the null kernel beside.
table_latency <- function(results, registry) {
  all <- latency_rows(results$runs)
  rows <- ok_rows(all)
  rows <- rows[is.finite(rows$lat_p50_ns), , drop = FALSE]
  if (nrow(rows) == 0) {
    return(list(reason = paste0("not measured here: ", why_no_rows(all, "the churn kernel with a latency pass")),
                launches = integer()))
  }
  null <- ok_rows(rows_of(results$runs, "null", c(all$folder[1], "latency", "contention", "paper")))
  null$allocator <- rep("null", nrow(null))
  body <- list()
  launches <- integer()
  rules <- integer()
  for (n in latency_threads(rows)) {
    at <- rbind(rows[rows$threads == n, ], null[null$threads == n, ])
    for (allocator in c(display_order(registry, unique(rows$allocator)), if (any(at$allocator == "null")) "null")) {
      own <- at[at$allocator == allocator, , drop = FALSE]
      if (nrow(own) == 0) next
      body <- c(body, list(latency_line(results, own, n, allocator, registry)))
      if (allocator != "null") launches <- c(launches, nrow(own))
    }
    rules <- c(rules, length(body))
  }
  lines <- tabular("rlrrrrr", c("threads", "allocator", "p50", "p99", "p99.9", "p99.99", "n"), body, rules[-length(rules)])
  list(lines = lines, launches = launches, caption = c(
    sprintf("Medians of the launches' quantiles%s; %s.", if (any(grepl("[0-9], .*\\]", lines))) " with intervals" else "",
            launches_phrase(launches)), mark_notes(lines)))
}

latency_line <- function(results, own, n, allocator, registry) {
  overhead <- stats::median(own$clock_overhead_ns, na.rm = TRUE)
  cells <- vapply(LATENCY_COLUMNS, function(column) {
    interval <- latency_interval(results, own, column)
    if (is.na(interval$value)) return("too few samples")
    paste0(latency_tex(interval$value, overhead), merged_mark(interval), " {\\footnotesize ", interval_tex(interval), "}")
  }, "")
  over <- any(own$threads > own$cpus)
  name <- if (allocator == "null") "\\emph{null}" else tex_escape(allocator_label(registry, allocator))
  c(paste0(n, if (over) "$^{*}$" else ""), name, cells, as.character(nrow(own)))
}

#' A fit row's value with its interval, or its reason.
fit_cell <- function(row) {
  if (nrow(row) == 0) return("")
  if (is.na(row$value[1])) return("")
  paste(tex_number(row$value[1]), "{\\footnotesize", interval_tex(row[1, ]), "}")
}

#' The fitted terms that belong to an allocator, at the largest n with a CPU for every thread.
table_fit <- function(fit, registry) {
  own <- fit$fit[fit$fit$term %in% c("T_alloc", "T_os", "faults", "joint_residual", "single_thread_gap") &
                   is.finite(fit$fit$n) & is.na(fit$fit$size), , drop = FALSE]
  if (nrow(own) == 0) {
    return(list(reason = "not measured here: no ok churn rows with a CPU for every thread", launches = integer()))
  }
  body <- list()
  for (allocator in display_order(registry, unique(own$allocator))) for (n in sort(unique(own$n))) {
    at <- own[own$allocator == allocator & own$n == n, ]
    term <- function(name) fit_cell(at[at$term == name, ])
    if (nrow(at) > 0) {
      body <- c(body, list(c(tex_escape(allocator_label(registry, allocator)), n, term("T_alloc"), term("T_os"),
                             term("faults"), term("single_thread_gap"), term("joint_residual"))))
    }
  }
  lines <- tabular("lrrrrrr", c("allocator", "threads", "$T_{\\mathrm{alloc}}$", "$T_{\\mathrm{os}}$", "faults/op", "gap",
                                "joint residual"), body)
  list(lines = lines, launches = own$launches, caption = medians_over(own$launches, lines))
}

#' One line a term and reason; allocators are named where it is not the reason of all of them.
reasons_by_term <- function(reasons, all, registry) {
  reasons <- unique(reasons[!is.na(reasons$reason), , drop = FALSE])
  if (nrow(reasons) == 0) return(reasons[c("term", "reason")])
  groups <- split(reasons, factor(paste(reasons$term, reasons$reason), unique(paste(reasons$term, reasons$reason))))
  do.call(rbind, lapply(unname(groups), function(g) {
    who <- unique(stats::na.omit(g$allocator))
    some <- length(who) > 0 && length(who) < all
    data.frame(term = g$term[1], reason = paste0(g$reason[1], if (some) {
      paste0(" (", paste(allocator_label(registry, who), collapse = "; "), ")")
    }))
  }))
}

#' Terms that belong to the machine, and those that these data cannot give, with the reason.
table_terms <- function(fit, registry) {
  machine <- fit$fit[fit$fit$term %in% c("harness_loop", "P_L3", "P_eff", "P_eff/P_L3", "chase", "alpha", "C_lock",
                                              "alpha_node"), , drop = FALSE]
  reasons <- fit$fit[is.na(fit$fit$value), c("term", "allocator", "reason"), drop = FALSE]
  machine <- machine[is.finite(machine$value), , drop = FALSE]
  body <- lapply(seq_len(nrow(machine)), function(i) {
    m <- machine[i, ]
    what <- paste(c(stats::na.omit(m$allocator), stats::na.omit(m$variant),
                    if (is.finite(m$size)) fact_text("set_bytes", m$size) else if (is.finite(m$n)) plural(m$n, "thread")),
                  collapse = ", ")
    c(term_tex(m$term), tex_escape(what), number_text(m$value), tex_escape(m$unit), interval_tex(m), m$launches)
  })
  reasons <- reasons_by_term(reasons, length(unique(stats::na.omit(fit$model$allocator))), registry)
  body <- c(body, lapply(seq_len(nrow(reasons)), function(i) {
    c(term_tex(reasons$term[i]), sprintf("\\multicolumn{5}{p{0.72\\linewidth}}{%s}", tex_escape(reasons$reason[i])))
  }))
  list(lines = tabular(paste0("l", wrapped(0.3), "rlrr"), c("term", "of", "value", "unit", INTERVAL_HEAD, "n"), body),
       launches = machine$launches,
       caption = if (nrow(machine) > 0) sprintf("Values: %s.", launches_phrase(machine$launches)))
}

TERM_TEX <- c(P_eff = "$P_{\\mathrm{eff}}$", "P_eff/P_L3" = "$P_{\\mathrm{eff}} / P_{\\mathrm{L3}}$",
              T_metadata = "$T_{\\mathrm{metadata}}$", P_L3 = "$P_{\\mathrm{L3}}$", alpha = "$\\alpha$",
              alpha_node = "$\\alpha_{\\mathrm{node}}$", C_lock = "$C_{\\mathrm{lock}}$", T_os = "$T_{\\mathrm{os}}$",
              harness_loop = "harness loop", chase = "dependent load", joint_residual = "joint residual",
              single_thread_gap = "single-thread gap")

term_tex <- function(term) unname(ifelse(is.na(TERM_TEX[term]), tex_escape(term), TERM_TEX[term]))

#' Model against measurement, and the held-out sizes.
table_model <- function(fit, registry) {
  model <- fit$model
  if (nrow(model) == 0) {
    return(list(reason = "not measured here: no ok churn rows with a CPU for every thread", launches = integer()))
  }
  percent <- function(x) ifelse(is.finite(x), paste0(tex_number(100 * x), "\\,\\%"), "")
  body <- list()
  for (allocator in display_order(registry, unique(model$allocator))) {
    own <- model[model$allocator == allocator, ]
    own <- own[order(own$n), ]
    held <- fit$held_out[fit$held_out$allocator == allocator & fit$held_out$variant %in% METADATA_VARIANT, ]
    for (i in seq_len(nrow(own))) {
      body <- c(body, list(c(
        tex_escape(allocator_label(registry, allocator)), own$n[i], number_text(own$predicted[i]),
        paste(number_text(own$measured[i]), interval_tex(data.frame(value = own$measured[i], low = own$low[i],
                                                                    high = own$high[i], launches = own$launches[i]))),
        percent(own$error[i]),
        if (nrow(held) > 0) percent(stats::median(abs(held$error))) else "",
        if (nrow(held) > 0) percent(max(abs(held$error))) else ""
      )))
    }
  }
  head <- c("allocator", "threads", "predicted", "measured", "error", "held-out median", "held-out worst")
  list(lines = tabular("lrrrrrr", head, body), launches = model$launches, caption = c(
    if (nrow(fit$held_out) > 0) "Held out: errors at the sizes left out, of an allocator over all of them.",
    sprintf("Measured: %s.", launches_phrase(model$launches))))
}

#' remote_free: time an operation by allocator and variant, at the largest n with a CPU for every thread.
table_remote <- function(results, registry) {
  all <- rows_of(results$runs, "remote_free", "remote")
  rows <- ok_rows(all)
  if (nrow(rows) == 0) {
    return(list(reason = paste0("not measured here: ", why_no_rows(all, "the remote_free kernel")), launches = integer()))
  }
  fits <- rows$threads <= rows$cpus
  n <- if (any(fits)) max(rows$threads[fits]) else min(rows$threads)
  rows <- pick_slice(rows[rows$threads == n, , drop = FALSE], c("variant", "work"))
  rows$variant[is.na(rows$variant)] <- ""
  variants <- sort(unique(rows$variant))
  variants <- variants[seq_len(min(4, length(variants)))]
  allocators <- display_order(registry, unique(rows$allocator))
  launches <- integer()
  body <- lapply(allocators, function(allocator) {
    intervals <- lapply(variants, function(v) {
      own <- rows[rows$allocator == allocator & rows$variant == v, , drop = FALSE]
      launch_interval(own, own$ns_per_op)
    })
    launches <<- c(launches, vapply(intervals, `[[`, 0L, "launches"))
    c(tex_escape(allocator_label(registry, allocator)),
      vapply(intervals, function(i) if (is.na(i$value)) "" else paste(number_text(i$value), interval_tex(i)), ""))
  })
  title <- paste0(plural(n, "thread"), if (!any(fits)) ", oversubscribed" else "")
  head <- c(paste0("allocator (", title, ")"), tex_escape(ifelse(variants == "", "ns/op", variants)))
  lines <- tabular(paste0("l", strrep("r", length(variants))), head, body)
  list(lines = lines, launches = launches, caption = medians_over(launches, lines))
}

#' False sharing by object size: paired slow-down, and the share of lines that hold blocks of two threads.
table_sharing <- function(results, registry) {
  ratios <- false_sharing_ratios(results$runs)
  if (!is.null(ratios)) ratios$apart <- apart_from(false_sharing_ratios(results$runs, sum(is.finite(ratios$value))), 1)
  ratios <- ratios[is.finite(ratios$value), , drop = FALSE]
  if (is.null(ratios) || nrow(ratios) == 0) {
    return(list(reason = "not measured here: no ok pairs of shared and private rows", launches = integer()))
  }
  columns <- unique(ratios[order(ratios$kernel, ratios$object), c("kernel", "object")])
  lines <- shared_lines(results, unique(ratios$threads))
  body <- lapply(display_order(registry, unique(ratios$allocator)), function(a) {
    c(tex_escape(allocator_label(registry, a)), vapply(seq_len(nrow(columns)), function(k) {
      at <- ratios$allocator == a & ratios$kernel == columns$kernel[k] & ratios$object %in% columns$object[k]
      if (!any(at)) return("")
      share <- lines$share[lines$allocator == a & lines$kernel == columns$kernel[k] & lines$object %in% columns$object[k]]
      paste0(number_text(ratios$value[at]), apart_mark(ratios$apart[at]), " {\\footnotesize ", interval_tex(ratios[at, ]), "}",
             if (length(share) > 0) paste0("; ", number_text(100 * share, 2), "\\,\\%"))
    }, ""))
  })
  head <- paste0(tex_escape(columns$kernel), ifelse(is.na(columns$object), "", paste0(", ", columns$object, "\\,B")))
  list(lines = tabular(paste0("l", strrep("r", nrow(columns))), c("allocator", head), body), launches = ratios$launches,
       caption = c(
         if (nrow(lines) > 0) paste("Behind the semicolon: the share of the blocks' cache lines that hold live blocks of two",
                                    "threads, from the addresses alone."),
         together_sentence(ratios),
         sprintf("Paired ratios%s over %s.", with_intervals(ratios),
                 launches_phrase(ratios$launches, "pair of launches", "pairs of launches"))))
}

#' Median share of cache lines with live blocks of two threads, which the false-sharing kernels report.
shared_lines <- function(results, threads) {
  rows <- ok_rows(results$runs)
  rows <- rows[rows$kernel %in% FALSE_KERNELS & rows$threads %in% threads, , drop = FALSE]
  value <- function(name) {
    own <- results$metrics[results$metrics$name %in% name, , drop = FALSE]
    suppressWarnings(as.numeric(own$value[match(rows$key, own$key)]))
  }
  rows$share <- value("lines_shared") / value("lines")
  rows$object <- param_number(rows, "object")
  rows <- rows[is.finite(rows$share), , drop = FALSE]
  if (nrow(rows) == 0) return(data.frame(kernel = character(), object = numeric(), allocator = character(), share = numeric()))
  stats::aggregate(share ~ kernel + object + allocator, data = rows, FUN = stats::median)
}

OTHER_SERVED <- "wrong_allocator" # launched, but the library named did not serve
NOT_LAUNCHED <- "skipped"

#' Which library served each allocator, as the process itself said: of launches that ended well only.
table_versions <- function(results, registry) {
  runs <- all_launches(results)
  runs <- runs[!is.na(runs$allocator), , drop = FALSE]
  allocators <- display_order(registry, unique(runs$allocator))
  if (length(allocators) == 0) return(list(reason = "not measured here: no rows", launches = integer()))
  words <- function(x) paste(unique(stats::na.omit(x)), collapse = ", ")
  apart <- intersect(c(OTHER_SERVED, NOT_LAUNCHED), runs$status)
  body <- lapply(allocators, function(a) {
    own <- runs[runs$allocator == a, , drop = FALSE]
    ok <- ok_rows(own)
    ids <- unique(stats::na.omit(ok$allocator_build_id))
    c(tex_escape(allocator_label(registry, a)), tex_escape(shorten(words(ok$allocator_version), 28)),
      paste(tex_path(unique(stats::na.omit(basename(ok$allocator_path)))), collapse = ", "),
      paste(tex_path(substr(ids, 1, 12)), collapse = ", "),
      count_text(c(nrow(ok), sum(!own$status %in% c("ok", apart)), vapply(apart, function(s) sum(own$status %in% s), 0L))))
  })
  list(lines = tabular(paste0("l", wrapped(0.2), wrapped(0.22), wrapped(0.14), "rr", strrep("r", length(apart))),
                       c("allocator", "version", "library", "build-id", "ok", "failed",
                         c("another", "not run")[match(apart, c(OTHER_SERVED, NOT_LAUNCHED))]), body),
       launches = nrow(ok_rows(runs)),
       caption = c(sprintf("Version, library and build-id are of the %s.",
                           plural(nrow(ok_rows(runs)), "launch that ended well (ok)", "launches that ended well (ok)")),
                   if (any(runs$status %in% OTHER_SERVED)) "Another: launches that another library served; they stand for none.",
                   if (any(runs$status %in% NOT_LAUNCHED)) "Not run: skipped before the launch."))
}

#' Launches by sweep folder and status: failures are shown, never dropped silently.
table_launches <- function(results) {
  runs <- all_launches(results)
  if (nrow(runs) == 0) return(list(reason = "not measured here: no rows", launches = integer()))
  folders <- unique(runs$folder)
  body <- lapply(folders, function(folder) {
    own <- runs[runs$folder == folder, ]
    reasons <- sort(table(own$status_detail[own$status != "ok"]), decreasing = TRUE)
    c(tex_escape(source_text(own)), tex_escape(paste(unique(own$kernel), collapse = ", ")), as.character(nrow(own)),
      as.character(sum(own$status == "ok")), tex_escape(status_counts(own)),
      if (length(reasons) > 0) tex_escape(shorten(names(reasons)[1], 90)) else "")
  })
  list(lines = tabular(paste0(wrapped(0.12), wrapped(0.16), "rr", wrapped(0.14), wrapped(0.28)),
                       c("sweep", "kernels", "launches", "ok", "failed", "most frequent reason"), body),
       launches = nrow(runs), caption = sprintf("In all: %s.", launches_phrase(nrow(runs))))
}

# What of meta.json describes the machine in the paper: names of its facts, and what they are called.
MACHINE_FACTS <- c(cpu_model = "CPU", cpus_allowed = "CPUs the process may use", cores = "cores", packages = "sockets",
                   numa_nodes = "NUMA nodes", smt = "SMT", l1d_bytes = "L1D", l2_bytes = "L2", l3_bytes = "L3",
                   memory_bytes = "memory", hypervisor = "virtual machine", microcode = "microcode", governor = "governor",
                   turbo = "turbo", thp = "transparent huge pages", numa_balancing = "NUMA balancing",
                   perf_event_paranoid = "perf_event_paranoid", clocksource = "clock source", os = "system",
                   kernel = "kernel", libc = "C library")

#' One fact in words: sizes in KiB, MiB or GiB, node lists by their number, yes and no.
fact_text <- function(name, value) {
  if (name == "numa_nodes") return(as.character(length(value)))
  if (is.logical(value)) return(if (isTRUE(value)) "yes" else "no")
  if (endsWith(name, "_bytes") && is.numeric(value) && value > 0) {
    step <- min(3, floor(log2(value) / 10))
    return(paste(number_text(value / 1024^step), c("B", "KiB", "MiB", "GiB")[step + 1]))
  }
  shorten(paste(unlist(value), collapse = ", "), 90)
}

#' The machine as meta.json of the first folder that describes one says.
table_machine <- function(results) {
  machine <- machine_of(results$meta)
  if (length(machine$facts) == 0) {
    return(list(reason = "not recorded: no description of the machine in the results", launches = integer()))
  }
  cells <- lapply(names(MACHINE_FACTS), function(name) {
    value <- machine$facts[[name]]
    why <- machine$unknown[[name]]
    text <- if (length(value) > 0) tex_escape(fact_text(name, value))
            else paste0("\\emph{not known", if (length(why) > 0) paste0(": ", tex_escape(why)), "}")
    c(tex_escape(MACHINE_FACTS[[name]]), text)
  })
  commit <- unique(unlist(lapply(results$meta, function(one) one$suite$git_commit)))
  cells <- c(cells, list(c("suite, commit",
                         if (length(commit) > 0) tex_path(substr(commit, 1, 12))[1] else "\\emph{not recorded}")))
  launches <- nrow(all_launches(results))
  list(lines = tabular(paste0("l", wrapped(0.6)), c("fact", "value"), cells), launches = launches,
       caption = sprintf("Recorded with %s in %s.", launches_phrase(launches),
                         plural(length(results$folders), "folder")))
}

#' Every table by name.
#' @param ledger of claims_ledger
all_tables <- function(results, fit, claims, registry, ledger = claims_ledger(results, claims)) {
  comparison <- compare_published(results, claims)
  list(published = table_published(results, comparison, claims, registry), verdicts = table_verdicts(ledger, claims),
       ledger = table_ledger(ledger, claims), arithmetic = table_arithmetic(claims),
       sensitivity = table_sensitivity(comparison), latency = table_latency(results, registry),
       fit = table_fit(fit, registry), terms = table_terms(fit, registry), model = table_model(fit, registry),
       heldout = table_heldout(fit), steps = table_steps(fit, registry), planted = table_planted(fit, registry),
       contention = table_contention(fit, registry), handover = table_handover(fit),
       remote = table_remote(results, registry), sharing = table_sharing(results, registry),
       anatomy = table_anatomy(results, registry), mallocpath = table_path(results, registry, "malloc"),
       freepath = table_path(results, registry, "free"),
       applications = table_applications(results, registry), shares = table_shares(results, registry),
       coherence = table_coherence(results, registry), quantum = table_quantum(results, registry, "weave"),
       slack = table_quantum(results, registry, "timed"),
       versions = table_versions(results, registry),
       launches = table_launches(results), machine = table_machine(results))
}

# What each table shows, the beginning of its caption.
TABLE_TITLES <- c(published = "The published values and ours",
                  verdicts = "Verdicts on the claims of the contention paper",
                  ledger = "Verdicts on the claims of the other sources",
                  arithmetic = "The sources' own numbers, checked against each other",
                  sensitivity = "The ratio of mimalloc to jemalloc by live set, lifetimes and touching",
                  latency = "Latency of one malloc in ns",
                  sharing = "Slow-down by false sharing and kernel",
                  anatomy = "What a hot malloc and a hot free execute, by size and allocator, in the simulated machine",
                  mallocpath = "The machine code that a hot malloc executed",
                  freepath = "The machine code that a hot free executed",
                  coherence = "Misses and who causes them, on the simulated machine",
                  quantum = "What the length of a turn changes in counts of the simulated machine, in weave mode",
                  slack = "What it changes in timed mode how far a core may run ahead",
                  applications = "Applications under each allocator: ratios to the C library's own",
                  shares = "Share of an application's CPU samples in its allocator",
                  remote = "Blocks freed by another thread than their allocator's: ns of thread time a block, by pattern",
                  terms = "Terms that belong to the machine, and terms that these data cannot give, with the reason",
                  fit = "Terms by allocator, in ns of thread time an operation, where every thread has a CPU",
                  model = paste("Prediction from $T_{\\mathrm{metadata}}$ and $T_{\\mathrm{os}}$ alone against measurement,",
                                "in ns of thread time an operation"),
                  heldout = "Held-out validation of the cost model",
                  steps = "Where $T_{\\mathrm{metadata}}$ steps with the size",
                  planted = "Planted costs, term by term",
                  contention = "Models of contention, judged by the thread counts that they did not see",
                  handover = "What it costs to hand a lock over, by lock and waiters",
                  machine = "The machine as recorded with the results",
                  versions = "What served each allocator, as the process itself reported it",
                  launches = "Launches by sweep and status")

#' Write tab-NAME.tex for each table and the macros of their captions.
write_tables <- function(tables, out) {
  macros <- character()
  for (name in names(tables)) {
    table <- tables[[name]]
    lines <- if (is.null(table$reason)) table$lines else sprintf("\\emph{%s}", tex_escape(table$reason))
    write_lines(lines, file.path(out, paste0("tab-", name, ".tex")))
    macros[paste0("capTab", macro_part(name))] <- caption_tex(TABLE_TITLES[[name]], table)
  }
  write_lines(macro_lines(macros), file.path(out, "table-macros.tex"))
}
