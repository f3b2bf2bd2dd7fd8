# Names and colours of the allocators: allocators/registry.ini is the one place that states them.

# The Okabe-Ito palette, by the registry's colour index. Index 5 is darkened from #F0E442, which is
# illegible as a thin line on white.
PALETTE <- c("#000000", "#E69F00", "#56B4E9", "#009E73", "#B8A800", "#0072B2", "#D55E00", "#CC79A7")
NULL_COLOUR <- "#7F7F7F"

#' Read the allocator registry (INI: sections, key = value, comments after # at line start or a blank).
#' @param file path of registry.ini; a missing file gives an empty registry
#' @return data.frame section, label, colour (hex), index, in display order
read_registry <- function(file) {
  empty <- data.frame(section = character(), label = character(), colour = character(), dash = integer())
  if (!file.exists(file)) return(empty)
  lines <- sub("(^|[[:space:]])[#;].*$", "", readLines(file, warn = FALSE, encoding = "UTF-8"))
  lines <- trimws(lines)
  section <- NA_character_
  rows <- list()
  for (line in lines[nzchar(lines)]) {
    if (grepl("^\\[.*\\]$", line)) {
      section <- trimws(substr(line, 2, nchar(line) - 1))
      rows[[section]] <- list()
    } else if (grepl("=", line, fixed = TRUE) && !is.na(section)) {
      rows[[section]][[trimws(sub("=.*$", "", line))]] <- trimws(sub("^[^=]*=", "", line))
    }
  }
  if (length(rows) == 0) return(empty)
  field <- function(name, fallback) {
    unname(mapply(function(row, other) if (is.null(row[[name]])) other else row[[name]], rows, fallback))
  }
  index <- suppressWarnings(as.integer(field("colour", rep("1", length(rows)))))
  index[is.na(index) | index < 1 | index > length(PALETTE)] <- 1L
  styled(data.frame(section = names(rows), label = field("label", names(rows)), colour = PALETTE[index]))
}

#' Give each entry of a colour its own dash type: two entries never look alike.
styled <- function(registry) {
  registry$dash <- stats::ave(seq_len(nrow(registry)), registry$colour, FUN = seq_along)
  registry
}

#' The registry with every allocator of the data in it: unknown ones keep their name and get a colour.
#' @param registry from read_registry
#' @param allocators names found in the data
complete_registry <- function(registry, allocators) {
  more <- sort(setdiff(unique(allocators), c(registry$section, "", NA)))
  if (length(more) > 0) {
    used <- table(factor(registry$colour, PALETTE))
    free <- rep(PALETTE[order(used)], length.out = length(more))
    registry <- rbind(registry, data.frame(section = more, label = more, colour = free, dash = 1L))
  }
  styled(registry)
}

#' Display name of allocators.
allocator_label <- function(registry, allocator) {
  label <- registry$label[match(allocator, registry$section)]
  ifelse(is.na(label), allocator, label)
}

#' Put allocators into display order.
display_order <- function(registry, allocators) {
  unique(allocators[order(match(allocators, registry$section), allocators)])
}
