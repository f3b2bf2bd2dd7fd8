# What a hot malloc and a hot free execute: counts by allocator and size from rows of the anatomy kernel, and listings
# of the machine code (RESULTS/disasm/ALLOCATOR-CALL.json, by ak disasm).

ANATOMY_CALLS <- c("malloc", "free")
ANATOMY_COUNTS <- c("instructions", "loads", "stores", "atomics", "lines")
ANATOMY_OVER_ALL <- c("fast_ratio", "mean_instructions")
ANATOMY_HEAP <- "warm" # 300 other blocks; an empty heap gives its last page back at every free
ANATOMY_OTHER <- "one"
LISTED_ALLOCATORS <- c("mimalloc", "tlfl")
LISTED_SIZE <- 64
LISTING_LINES <- 70 # of a path; more does not fit a page

anatomy_columns <- function(names) as.vector(outer(names, ANATOMY_CALLS, function(name, call) paste(call, name, sep = "_")))

#' Rows of the anatomy kernel with the columns CALL_COUNT and l1_hit.
#' @param results from read_results
#' @return list: rows (ok ones with counts), all (failed ones included)
anatomy_rows <- function(results) {
  all <- rows_of(results$simulated, "anatomy", "fastpath-anatomy")
  rows <- ok_rows(all)
  names <- anatomy_columns(c(ANATOMY_COUNTS, ANATOMY_OVER_ALL))
  own <- results$metrics[results$metrics$name %in% names & results$metrics$key %in% rows$key, , drop = FALSE]
  for (name in names) {
    one <- own[own$name == name, , drop = FALSE]
    rows[[name]] <- suppressWarnings(as.numeric(one$value[match(rows$key, one$key)]))
  }
  rows$l1_hit <- 1 - rows$l1d_miss / rows$l1d_access
  list(rows = rows[is.finite(rows$malloc_instructions), , drop = FALSE], all = all)
}

#' The rows that tables and text are about: of the heap state ANATOMY_HEAP where there are any.
anatomy_slice <- function(rows) {
  if (any(rows$heap_state %in% ANATOMY_HEAP)) rows[rows$heap_state %in% ANATOMY_HEAP, , drop = FALSE] else rows
}

#' Counts of one allocator and size: medians over launches, and whether they differed.
anatomy_cell <- function(own) {
  median_of <- function(names) vapply(names, function(name) stats::median(own[[name]]), 0)
  counts <- anatomy_columns(ANATOMY_COUNTS)
  list(values = median_of(c(counts, anatomy_columns(ANATOMY_OVER_ALL))), l1_hit = stats::median(own$l1_hit),
       same = all(vapply(counts, function(name) diff(range(own[[name]])), 0) == 0), launches = nrow(own))
}

#' Whole numbers as such: a median of two launches may lie between.
whole_text <- function(x) ifelse(x == round(x), count_text(round(x)), number_text(x))

percent_tex <- function(x, digits = 3) ifelse(is.finite(x), paste0(number_text(100 * x, digits), "\\,\\%"), "")

#' "512 B", "4 KiB".
size_text <- function(bytes) {
  ifelse(bytes >= 1024 & bytes %% 1024 == 0, paste(bytes / 1024, "KiB"), paste(bytes, "B"))
}

#' Instructions, loads, stores, locked operations and lines of malloc and free by size and allocator.
table_anatomy <- function(results, registry) {
  anatomy <- anatomy_rows(results)
  rows <- anatomy$rows
  if (nrow(rows) == 0) {
    return(list(reason = paste0("not measured here: ", why_no_rows(anatomy$all, "the anatomy kernel in the simulated machine")),
                launches = integer()))
  }
  others <- heap_sentence(rows)
  rows <- anatomy_slice(rows)
  body <- list()
  rules <- integer()
  cells <- list()
  for (size in sort(unique(rows$size_min))) {
    at <- rows[rows$size_min == size, , drop = FALSE]
    for (allocator in display_order(registry, unique(at$allocator))) {
      cell <- anatomy_cell(at[at$allocator == allocator, , drop = FALSE])
      cells <- c(cells, list(cell))
      body <- c(body, list(c(tex_escape(size_text(size)),
                             paste0(tex_escape(allocator_label(registry, allocator)), if (!cell$same) "$^{*}$"),
                             anatomy_texts(cell, "malloc"), anatomy_texts(cell, "free"), percent_tex(cell$l1_hit, 4))))
    }
    rules <- c(rules, length(body))
  }
  launches <- vapply(cells, `[[`, 0L, "launches")
  same <- all(vapply(cells, `[[`, NA, "same"))
  list(lines = anatomy_lines(body, rules[-length(rules)]), launches = launches, caption = c(
    paste0(heap_phrase(rows), "; counts are of the path that most calls took, from the first instruction of the call to its ",
           "return; share: of the calls that took it; mean: instructions over all calls."),
    "Atomic: locked instructions, which count neither as loads nor as stores. Lines: different lines (64 B) of data, the stack's",
    "left out. L1 hits: of all data accesses of the timed region.", others,
    sprintf(if (same) "Over %s a line, with equal counts." else "Medians over %s a line; asterisk: they differ.",
            launches_phrase(launches))))
}

ANATOMY_HEADS <- c("instr.", "loads", "stores", "atomic", "lines", "share", "mean")

#' The cells of one call, in the order of ANATOMY_HEADS.
anatomy_texts <- function(cell, call) {
  value <- function(names) cell$values[paste(call, names, sep = "_")]
  c(whole_text(value(ANATOMY_COUNTS)), percent_tex(value("fast_ratio")), number_text(value("mean_instructions")))
}

#' The tabular, with a line above its head that says which columns are of which call.
anatomy_lines <- function(body, rules) {
  n <- length(ANATOMY_HEADS)
  lines <- tabular(paste0("rl", strrep("r", 2 * n + 1)), c("size", "allocator", ANATOMY_HEADS, ANATOMY_HEADS, "L1 hits"),
                   body, rules)
  calls <- paste(c("\\multicolumn{2}{l}{}", sprintf("\\multicolumn{%d}{c}{%s}", n, ANATOMY_CALLS), ""), collapse = " & ")
  append(lines, paste(calls, "\\\\"), match("\\toprule", lines))
}

#' How many lines of the table would differ with one other live block.
heap_sentence <- function(rows) {
  both <- lapply(c(ANATOMY_HEAP, ANATOMY_OTHER), function(state) {
    own <- rows[rows$heap_state %in% state, , drop = FALSE]
    own[!duplicated(own[c("allocator", "size_min")]), c("allocator", "size_min", anatomy_columns(ANATOMY_COUNTS))]
  })
  pairs <- merge(both[[1]], both[[2]], by = c("allocator", "size_min"))
  if (nrow(pairs) == 0) return(NULL)
  counts <- anatomy_columns(ANATOMY_COUNTS)
  differ <- rowSums(pairs[paste0(counts, ".x")] != pairs[paste0(counts, ".y")]) > 0
  sprintf("With one other live block instead, %s of %s lines %s.", if (any(differ)) count_text(sum(differ)) else "none",
          count_text(nrow(pairs)), if (sum(differ) == 1) "differs" else "differ")
}

heap_phrase <- function(rows) {
  state <- unique(rows$heap_state)
  if (identical(state, "warm")) "With 300 other live blocks of the size"
  else paste("Heap state", paste(tex_escape(state), collapse = ", "))
}

# ---- listings ----

#' One listing of ak disasm, or NULL where there is none.
read_listing <- function(results, allocator, call) {
  file <- file.path(results$root, "disasm", paste0(allocator, "-", call, ".json"))
  if (length(file) != 1 || !file.exists(file)) return(NULL)
  tryCatch(jsonlite::fromJSON(file), error = function(e) usage_error(file, ": not readable as JSON: ", conditionMessage(e)))
}

#' The letters of what an instruction did, as the caption explains them.
listing_marks <- function(path) {
  paste0(ifelse(path$load, "l", ""), ifelse(path$store, "s", ""), ifelse(path$atomic, "a", ""),
         ifelse(path$thread_local, "t", ""), ifelse(path$branch, "b", ""))
}

#' Marks and instruction of each line, filled up to n.
listing_cells <- function(listing, n) {
  path <- listing$path
  cut <- nrow(path) > LISTING_LINES
  kept <- seq_len(min(nrow(path), LISTING_LINES))
  code <- function(text) ifelse(nzchar(text), paste0("\\texttt{", tex_escape(text), "}"), "")
  cells <- cbind(code(listing_marks(path[kept, ])), code(path$text[kept]))
  if (cut) cells <- rbind(cells, c("", sprintf("\\emph{and %s more}", count_text(nrow(path) - LISTING_LINES))))
  rbind(cells, matrix(" ", n - nrow(cells), 2))
}

#' The machine code that a hot call executed, two allocators side by side.
table_path <- function(results, registry, call) {
  listings <- lapply(stats::setNames(LISTED_ALLOCATORS, LISTED_ALLOCATORS), function(a) read_listing(results, a, call))
  listings <- listings[!vapply(listings, is.null, NA)]
  if (length(listings) == 0) {
    return(list(reason = "not measured here: the results hold no listing (ak disasm)", launches = integer()))
  }
  n <- max(vapply(listings, function(l) min(nrow(l$path), LISTING_LINES + 1), 0))
  cells <- do.call(cbind, lapply(listings, listing_cells, n = n))
  head <- unlist(lapply(names(listings), function(a) {
    c("", paste(tex_escape(allocator_label(registry, a)), tex_escape(listings[[a]]$allocator_version)))
  }))
  lines <- tabular(strrep("ll", length(listings)), head, lapply(seq_len(n), function(i) {
    ifelse(nzchar(cells[i, ]), cells[i, ], " ")
  }))
  shares <- vapply(names(listings), function(a) {
    sprintf("%s of %s calls in %s", percent_tex(listings[[a]]$fast_ratio), count_text(listings[[a]]$calls),
            tex_escape(allocator_label(registry, a)))
  }, "")
  sizes <- unique(vapply(listings, function(l) as.numeric(l$size), 0))
  warm <- all(vapply(listings, function(l) l$heap_state, "") == "warm")
  list(lines = lines, launches = rep(1L, length(listings)), caption = c(
    sprintf("%s, %s: the path of %s, n = 1 launch each, as objdump decodes it.",
            paste(tex_escape(size_text(sizes)), collapse = " and "),
            if (warm) "300 other blocks of the size live" else "another heap than with 300 other blocks",
            and_list(shares)),
    "Marks: l load, s store, a atomic, t thread-local storage, b branch."))
}

# ---- prose ----

#' "16 in mimalloc, 30 in jemalloc and 41 in glibc", fewest first.
instructions_phrase <- function(rows, registry, call) {
  allocators <- display_order(registry, unique(rows$allocator))
  counts <- vapply(allocators, function(a) stats::median(rows[[paste0(call, "_instructions")]][rows$allocator == a]), 0)
  by <- order(counts)
  and_list(paste(whole_text(counts[by]), "in", tex_escape(allocator_label(registry, allocators[by]))))
}

#' Sizes at which the path of a call holds locked instructions, "none" or "some (4 KiB and 32 KiB)".
locked_phrase <- function(own, call) {
  sizes <- sort(unique(own$size_min[own[[paste0(call, "_atomics")]] > 0]))
  if (length(sizes) == 0) "none" else paste0("some (", and_list(size_text(sizes)), ")")
}

#' Which other allocators have locked instructions on a path.
others_locked <- function(rows, registry) {
  locked <- rows$malloc_atomics > 0 | rows$free_atomics > 0
  others <- display_order(registry, unique(rows$allocator[locked & !rows$allocator %in% "mimalloc"]))
  if (length(others) == 0) return("No other allocator has any either.")
  paste0("Of the others, ", and_list(vapply(others, function(a) {
    sizes <- sort(unique(rows$size_min[locked & rows$allocator == a]))
    paste0(tex_escape(allocator_label(registry, a)), " has some at ", and_list(size_text(sizes)))
  }, "")), ".")
}

#' The published claims about mimalloc's fast path, beside what was counted.
anatomy_claims <- function(rows, claims, registry) {
  own <- rows[rows$allocator %in% "mimalloc", , drop = FALSE]
  if (nrow(own) == 0) return("The published claims are about mimalloc, which was not run here.")
  hits <- unique(percent_tex(sort(range(own$l1_hit)), 4))
  paste0("Published: no atomic instruction on the fast path of mimalloc's malloc. Counted in version ",
         and_list(tex_escape(unique(own$allocator_version))), " at ", plural(length(unique(own$size_min)), "size"), ": ",
         locked_phrase(own, "malloc"), " in malloc, ", locked_phrase(own, "free"), " in free. ", others_locked(rows, registry),
         " Published: an L1 hit ratio that approaches ", published_text(published_value(claims, "paper.l1", "mimalloc")),
         "\\,\\%. In the simulated L1 it is ", paste(hits, collapse = " to "),
         "; a hot pair has little to miss, so this says more of the loop than of the allocator.")
}

#' The paragraph about hot calls.
anatomy_macros <- function(results, claims, registry) {
  rows <- anatomy_slice(anatomy_rows(results)$rows)
  if (nrow(rows) == 0) return(c(sayAnatomy = "None was counted in these data."))
  size <- if (LISTED_SIZE %in% rows$size_min) LISTED_SIZE else min(rows$size_min)
  at <- rows[rows$size_min == size, , drop = FALSE]
  c(sayAnatomy = paste0("Instructions of a hot malloc of ", size_text(size), ": ", instructions_phrase(at, registry, "malloc"),
                        "; of the free that follows: ", instructions_phrase(at, registry, "free"),
                        " (Table~\\ref{tab:anatomy}). ", anatomy_claims(rows, claims, registry),
                        " Tables~\\ref{tab:mallocpath} and~\\ref{tab:freepath} print paths as machine code."))
}
