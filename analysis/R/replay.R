# Recorded programs played back: resident and live bytes over the program's calls.

REPLAY_PANELS <- 3 # traces that one figure has room for

#' Traces of replay rows, by their parameter: the name, or a file's own.
replay_trace <- function(rows) sub("[.]trace$", "", basename(sub(".*(^| )trace=([^ ]*).*", "\\2", rows$params)))

#' A metric of launches, by name.
#' @return numbers in the order of `keys`, NA where it is not there
replay_metric <- function(results, keys, name) {
  own <- results$metrics[results$metrics$name == name, , drop = FALSE]
  suppressWarnings(as.numeric(own$value[match(keys, own$key)]))
}

#' What timeline.csv has of the memory pass of some launches.
#' @param rows launches of replay with a memory pass
#' @return data.frame key, allocator, trace, share (0..1, of the trace's calls), resident (bytes beyond the look before the
#'   first call), live (bytes)
replay_looks <- function(results, rows) {
  first <- replay_metric(results, rows$key, "timeline_first")
  looks <- replay_metric(results, rows$key, "timeline_looks")
  trace <- replay_trace(rows)
  timeline <- read_timeline(results, rows$key)
  parts <- lapply(seq_len(nrow(rows)), function(i) {
    own <- timeline[timeline$key == rows$key[i], , drop = FALSE]
    if (is.na(first[i]) || looks[i] == 0 || nrow(own) < first[i] + looks[i]) return(NULL)
    at <- own[first[i] + seq_len(looks[i]), , drop = FALSE]
    data.frame(key = rows$key[i], allocator = rows$allocator[i], trace = trace[i], share = seq_len(looks[i]) / looks[i],
               resident = at$rss_bytes - own$rss_bytes[1], live = at$live_bytes)
  })
  do.call(rbind, parts)
}

#' Looks of timeline.csv, in their order, restricted to some launches.
#' @return data.frame key, t_ns, rss_bytes, live_bytes, usable_bytes
read_timeline <- function(results, keys) {
  parts <- lapply(intersect(names(results$folders), unique(sub("/[^/]*$", "", keys))), function(folder) {
    side <- read_side(results$folders[[folder]], "timeline.csv", results$contract, keys)
    side[c("key", "t_ns", "rss_bytes", "live_bytes", "usable_bytes")]
  })
  do.call(rbind, parts)
}

#' Medians over launches, at each look.
#' @return data.frame share, resident, live, launches
replay_medians <- function(looks) {
  by <- split(looks, looks$share)
  data.frame(share = as.numeric(names(by)), resident = vapply(by, function(own) stats::median(own$resident), 0),
             live = vapply(by, function(own) stats::median(own$live), 0), launches = vapply(by, nrow, 0L), row.names = NULL)
}

figure_replay <- function(results, registry) {
  all <- rows_of(results$runs, "replay", "replay-memory")
  rows <- ok_rows(all)
  if (nrow(rows) == 0) return(not_measured(why_no_rows(all, "the replay kernel with a memory pass")))
  looks <- replay_looks(results, rows)
  if (is.null(looks)) return(not_measured("no row of the replay kernel has looks at memory"))
  looks <- looks[is.finite(looks$resident), , drop = FALSE]
  traces <- utils::head(sort(unique(looks$trace)), REPLAY_PANELS)
  allocators <- display_order(registry, unique(looks$allocator))
  panels <- lapply(traces, function(trace) replay_panel(looks[looks$trace == trace, ], allocators))
  text <- allocator_label(registry, allocators)
  colour <- registry$colour[linetype_of(registry, allocators)]
  labels <- lapply(seq_along(panels), function(k) {
    calls <- max(replay_metric(results, rows$key[replay_trace(rows) == traces[k]], "trace_calls"))
    keep <- is.finite(panels[[k]]$end) & k == length(panels) # one set of names is enough for all
    c(sprintf("set title %s", gnuplot_string(paste0(traces[k], ", ", count_text(calls), " calls"))),
      sprintf("set yrange [0:%g]", panels[[k]]$high),
      end_labels(rep(1, sum(keep)), share_of(panels[[k]]$end[keep], 0, panels[[k]]$high), text[keep], colour[keep], gap = 0.07))
  })
  names(labels) <- sprintf("replay-labels-%d.gp", seq_along(panels))
  launches <- unlist(lapply(panels, `[[`, "launches"))
  list(files = c(list(
    "replay.dat" = unlist(lapply(panels, `[[`, "lines")),
    "replay-vars.gp" = gp_vars(series = length(allocators), panels = length(panels), lt_of = linetype_of(registry, allocators),
                               label_share = label_share(text))
  ), labels), launches = launches, caption = replay_caption(all, rows, launches, length(unique(looks$trace)) - length(traces)))
}

#' One trace: what is live, and a line an allocator.
replay_panel <- function(looks, allocators) {
  mb <- 1e-6
  medians <- lapply(allocators, function(a) {
    own <- looks[looks$allocator == a, , drop = FALSE]
    if (nrow(own) == 0) NULL else replay_medians(own)
  })
  live <- replay_medians(looks)
  list(lines = c(dat_block(100 * live$share, live$live * mb),
                 unlist(lapply(medians, function(m) dat_block(100 * m$share, m$resident * mb)))),
       high = 1.06 * mb * max(looks$resident, looks$live),
       end = vapply(medians, function(m) if (is.null(m)) NA_real_ else utils::tail(m$resident, 1) * mb, 0),
       launches = unlist(lapply(medians, function(m) m$launches[1])))
}

replay_caption <- function(all, rows, launches, left_out) {
  failed <- all[!all$status %in% c("ok", "skipped"), , drop = FALSE]
  touch <- unique(stats::na.omit(rows$touch))
  c(tex_escape(paste0("Sweep ", source_text(rows), if (length(touch) > 0) paste0("; stores to a block: ", and_list(touch)), ".")),
    "Lines: resident beyond what there was before the first call; grey: requested bytes that live. All threads stand still",
    "while memory is looked at.",
    sprintf("Medians over %s a line.", launches_phrase(launches)),
    if (left_out > 0) sprintf("Not shown: %s.", plural(left_out, "more trace", "more traces")),
    if (nrow(failed) > 0) sprintf("Left out: %s (%s).", plural(nrow(failed), "launch that failed", "launches that failed"),
                                  tex_escape(status_counts(failed))))
}
