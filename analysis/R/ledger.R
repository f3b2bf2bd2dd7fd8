# The ledger (claims.R) as it is shown: in a terminal, in the README, in the paper.

#' How many claims have which verdict, strongest first: "2 direction only, 7 not yet measured".
verdict_counts <- function(ledger) {
  counts <- table(factor(ledger$verdict, VERDICTS))
  counts <- counts[counts > 0]
  paste(counts, names(counts), collapse = ", ")
}

#' "2.59 [2.11, 3.30] n=6", "" where nothing was measured.
ours_text <- function(line) {
  if (!is.finite(line$value)) return("")
  interval <- if (is.finite(line$low)) paste0(" [", bound_text(line$low, line), ", ", bound_text(line$high, line), "]")
  unit <- if (line$unit %in% c("ratio", "count")) "" else paste0(" ", line$unit)
  paste0(number_text(line$value), interval, unit, " n=", line$launches)
}

#' What is missing, by reason: "waits for an item store (...): kv.put.ops kv.put.cpu".
missing_reasons <- function(ledger) {
  open <- ledger[!is.finite(ledger$value), , drop = FALSE]
  reason <- sub(";.*$", "", sub("^.*ours: [a-z ]+ \\((.*)\\)$", "\\1", open$note))
  vapply(unique(reason), function(one) paste0(one, ": ", paste(open$id[reason == one], collapse = " ")), "", USE.NAMES = FALSE)
}

# ---- the terminal ----

TERMINAL_WIDTH <- c(least = 80L, most = 120L)
LEDGER_ID_WIDTH <- 21L
LEDGER_VERDICT_WIDTH <- 22L

#' The width to print at: what the terminal says (COLUMNS), within bounds.
terminal_width <- function(columns = Sys.getenv("COLUMNS")) {
  width <- suppressWarnings(as.integer(columns))
  if (is.na(width)) TERMINAL_WIDTH[["least"]] else min(max(width, TERMINAL_WIDTH[["least"]]), TERMINAL_WIDTH[["most"]])
}

#' The ledger as lines of a terminal.
ledger_text <- function(ledger, width = terminal_width()) {
  wrap <- function(text, indent) {
    if (!nzchar(text)) character() else strwrap(text, width, indent = indent, exdent = indent)
  }
  head <- sprintf("%-*s%-*s%s", LEDGER_ID_WIDTH, "claim", LEDGER_VERDICT_WIDTH, "verdict",
                  "published, and ours with its interval")
  lines <- c(head, strrep("-", width))
  for (source in unique(ledger$source)) {
    own <- ledger[ledger$source == source, , drop = FALSE]
    shared <- shared_conditions(own)
    lines <- c(lines, source, unlist(lapply(paste0("[", names(shared), "] ", shared, recycle0 = TRUE), wrap, 2)))
    own$note <- marked_notes(own$note, shared)
    for (i in seq_len(nrow(own))) lines <- c(lines, claim_lines(own[i, ], width, wrap))
  }
  c(lines, strrep("-", width), wrap(paste0(plural(nrow(ledger), "claim"), ": ", verdict_counts(ledger), "."), 0),
    if (any(!is.finite(ledger$value))) c("Missing:", unlist(lapply(missing_reasons(ledger), wrap, 2))))
}

#' Conditions that several claims of a source share, each named by a letter, so that they are printed once.
shared_conditions <- function(ledger) {
  each <- unlist(lapply(strsplit(ledger$conditions, "; ", fixed = TRUE), unique))
  shared <- utils::head(unique(each[each %in% each[duplicated(each)]]), length(letters))
  stats::setNames(shared, letters[seq_along(shared)])
}

#' Notes with "[a] [b]" in the place of such conditions.
marked_notes <- function(notes, shared) {
  for (name in names(shared)) {
    whole <- paste0("(?<=^|; |, but |[(])\\Q", shared[[name]], "\\E(?=;|$|[)])")
    notes <- gsub(whole, paste0("[", name, "]"), notes, perl = TRUE)
  }
  gsub("(?<=\\[[a-z]\\]);(?= \\[[a-z]\\])", "", notes, perl = TRUE)
}

claim_lines <- function(line, width, wrap) {
  ours <- ours_text(line)
  values <- note_text(if (is.finite(line$published)) paste("published", number_text(line$published)),
                      if (nzchar(ours)) paste("ours", ours))
  first <- sprintf("%-*s%-*s", LEDGER_ID_WIDTH, paste0("  ", line$id), LEDGER_VERDICT_WIDTH, line$verdict)
  fits <- nchar(first) + 1 + nchar(values) <= width
  c(sub(" +$", "", paste0(first, if (fits) paste0(if (endsWith(first, " ")) "" else " ", values))),
    if (!fits) paste0("    ", values), wrap(line$note, 4),
    wrap(if (nzchar(line$arithmetic)) paste("its own numbers:", line$arithmetic) else "", 4))
}

# ---- the README ----

REFERENCE_FILE <- "run.csv"
REFERENCE_COLUMNS <- c("key", "value")

#' What the README says of the run behind the ledger: machine, commit, versions, launches.
#' @return data.frame key, value
reference_run <- function(results) {
  machine <- machine_of(results$meta)$facts
  ok <- ok_rows(all_launches(results))
  values <- function(what) and_list(unique(unlist(lapply(results$meta, what))))
  versions <- vapply(sort(unique(ok$allocator), method = "radix"), function(a) {
    paste(a, and_list(short_version(unique(stats::na.omit(ok$allocator_version[ok$allocator == a])))))
  }, "")
  data.frame(key = c("cpu", "cpus", "hypervisor", "kernel", "libc", "commit", "preset", "sweeps", "allocators", "launches", "ok",
                     "last_launch"),
             value = c(fact_of(machine$cpu_model), fact_of(machine$cpus_allowed), fact_of(machine$hypervisor),
                       fact_of(machine$kernel), fact_of(machine$libc), values(function(m) short_commit(m$suite$git_commit)),
                       values(function(m) m$preset), paste(names(results$folders), collapse = " "),
                       paste(versions, collapse = ", "), nrow(all_launches(results)), nrow(ok), max(c("", ok$started_at))))
}

fact_of <- function(value) {
  if (is.null(value)) "" else if (is.logical(value)) c("no", "yes")[value + 1] else paste(unlist(value))[1]
}
short_commit <- function(commit) if (is.character(commit)) substr(commit, 1, 12)

README_WIDTH <- 120

#' The README's block: counts by verdict and the run they are from.
#' @param run of reference_run
readme_ledger <- function(ledger, run) {
  of <- function(key) run$value[run$key == key]
  words <- VERDICTS[VERDICTS %in% ledger$verdict]
  rows <- vapply(words, function(word) {
    own <- ledger$id[ledger$verdict == word]
    sprintf("| %s | %d | %s |", word, length(own), paste0("`", own, "`", collapse = " "))
  }, "")
  machine <- paste0(of("cpu"), ", ", plural(as.numeric(of("cpus")), "CPU"), if (of("hypervisor") == "yes") ", a virtual machine")
  intro <- paste0("Verdicts on ", plural(nrow(ledger), "published claim"), " from ", length(unique(ledger$source)),
                  " sources, by ", plural(as.numeric(of("launches")), "launch", "launches"), " (", of("ok"),
                  " ended well; preset ", of("preset"), ", commit ", of("commit"), ", ", substr(of("last_launch"), 1, 10),
                  ") on ", machine, ":")
  c(strwrap(intro, README_WIDTH), "",
    "| verdict | claims | which |", "|---|---|---|", unname(rows))
}

# ---- the paper ----

#' What a claim is about, and how it is tested: "mean throughput (ratio, mimalloc/jemalloc)".
claim_words <- function(ledger, claims) {
  metric <- claims$claims$metric[match(ledger$id, claims$claims$id)]
  paste0(metric, " (", ledger$kind, ", ", gsub(" ", ", ", ledger$allocators), ")")
}

ours_tex <- function(line) {
  if (!is.finite(line$value)) return("")
  unit <- if (line$unit %in% c("ratio", "count")) "" else paste0(" ", tex_escape(line$unit))
  paste0(tex_number(line$value), if (is.finite(line$low)) paste0(" ", interval_tex(line)), unit)
}

#' The verdict on each claim of the contention paper.
table_verdicts <- function(ledger, claims) {
  own <- ledger[ledger$source == PUBLISHED_SOURCE, , drop = FALSE]
  words <- claim_words(own, claims)
  body <- lapply(seq_len(nrow(own)), function(i) {
    v <- own[i, ]
    c(tex_escape(words[i]), number_text(v$published), ours_tex(v), if (v$launches > 0) count_text(v$launches) else "",
      paste0("\\textbf{", v$verdict, "}"), tex_escape(v$note))
  })
  list(lines = tabular(paste0(wrapped(0.17), "rrr", wrapped(0.13), wrapped(0.36)),
                       c("claim", "published", "ours", "n", "verdict", "condition or reason"), body, seq_len(nrow(own) - 1)),
       launches = own$launches,
       caption = if (all(own$launches == 0)) "No launch of ours stands beside them."
                 else paste0("Ours: ", launches_phrase(own$launches), " or pairs of launches."))
}

LEDGER_NOTE_WIDTH <- 110 # characters, so that the table fits a page; the whole note is in the ledger's file

#' The note of a line; of one that waits the first phrase, which says for what.
ledger_reason <- function(line) if (line$verdict %in% WAITING_VERDICTS) sub(";.*$", "", line$note) else line$note

#' The verdict on each claim of the other sources.
table_ledger <- function(ledger, claims) {
  own <- ledger[ledger$source != PUBLISHED_SOURCE, , drop = FALSE]
  words <- claim_words(own, claims)
  body <- lapply(seq_len(nrow(own)), function(i) {
    v <- own[i, ]
    c(sprintf("\\texttt{%s}", tex_escape(v$id)), tex_escape(words[i]), tex_number(v$published), ours_tex(v),
      paste0("\\textbf{", v$verdict, "}"), tex_escape(shorten(ledger_reason(v), LEDGER_NOTE_WIDTH)))
  })
  list(lines = tabular(paste0("l", wrapped(0.33), "rr", wrapped(0.15), wrapped(0.36)),
                       c("claim", "about", "published", "ours", "verdict", "reason"), body),
       launches = own$launches,
       caption = if (all(own$launches == 0)) "No launch of ours stands beside them."
                 else paste0("Ours: ", launches_phrase(own$launches), " or pairs of launches."))
}

#' What the sources' own numbers say of each other.
table_arithmetic <- function(claims) {
  lines <- claims$hypotheses[claims$hypotheses$kind == "arithmetic", , drop = FALSE]
  lines <- lines[order(match(lines$claim, claims$claims$id)), , drop = FALSE]
  body <- lapply(seq_len(nrow(lines)), function(i) {
    check <- check_arithmetic(lines[i, ], claims, claim_source(claims, lines$claim[i]))
    words <- sub(": (holds|does not hold)[^:]*$", "", check$text)
    outcome <- sub("^.*: ", "", check$text)
    c(sprintf("\\texttt{%s}", tex_escape(lines$claim[i])), tex_escape(words),
      if (check$outcome == "breaks") paste0("\\textbf{", outcome, "}") else tex_escape(outcome))
  })
  list(lines = tabular(paste0("l", wrapped(0.62), "l"), c("claim", "its own numbers", "check"), body), launches = integer(),
       caption = paste("A printed number stands for all that round to it; where a check holds within a margin only, the margin",
                       "is given. No launch of ours takes part."))
}

#' The paper's macros of the ledger: counts over the contention paper's claims and over all.
ledger_macros <- function(ledger) {
  own <- ledger[ledger$source == PUBLISHED_SOURCE, , drop = FALSE]
  part <- c(paper.ops = "Ops", paper.p999 = "Tail", paper.l3 = "Cache", paper.rss = "Rss")
  table <- own[own$id %in% names(part), , drop = FALSE]
  c(stats::setNames(table$verdict, paste0("verdict", part[table$id])),
    verdictCounts = tex_escape(verdict_counts(own)), ledgerCounts = tex_escape(verdict_counts(ledger)))
}
