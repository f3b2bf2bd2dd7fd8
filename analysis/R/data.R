# Tables that people write and keep (paper/*.csv): one record a line, every line whole; what is damaged is refused with its line.

#' Read a kept table; every field as it stands there, "" is NA.
#' @param file path
#' @param columns that it has to have
#' @return data.frame of text and `where` (file:line)
read_data <- function(file, columns) {
  lines <- data_lines(file)
  fields <- lapply(lines, function(line) {
    scan(text = line, what = "", sep = ",", quote = "\"", quiet = TRUE, na.strings = character(), encoding = "UTF-8")
  })
  header <- fields[[1]]
  missing <- setdiff(columns, header)
  if (length(missing) > 0) usage_error(file, ": missing columns: ", paste(missing, collapse = ", "))
  if (anyDuplicated(header)) usage_error(file, ":1: the column ", header[anyDuplicated(header)], " is there twice")
  count <- ifelse(nzchar(lines), lengths(fields), 0L)
  bad <- which(count != length(header))
  if (length(bad) > 0) {
    usage_error(file, ":", bad[1], ": ", plural(count[bad[1]], "field"), ", expected ", length(header))
  }
  text <- vapply(fields[-1], identity, header)
  data <- as.data.frame(t(matrix(text, length(header))))
  names(data) <- header
  data[data == ""] <- NA
  data$where <- sprintf("%s:%d", file, seq_len(nrow(data)) + 1L)
  data
}

#' The lines of a kept table, refused where they are no text.
data_lines <- function(file) {
  if (!file.exists(file)) usage_error(file, ": not found; it is part of the suite: fetch it again")
  bytes <- readBin(file, "raw", file.info(file)$size)
  if (length(bytes) == 0) usage_error(file, ": empty file; a header was expected")
  nul <- match(as.raw(0), bytes)
  if (!is.na(nul)) usage_error(file, ":", sum(bytes[seq_len(nul)] == as.raw(10)) + 1, ": a NUL byte; expected text")
  lines <- readLines(file, warn = FALSE, encoding = "UTF-8")
  bad <- which(!validUTF8(lines))
  if (length(bad) > 0) usage_error(file, ":", bad[1], ": not UTF-8")
  open <- which(lengths(regmatches(lines, gregexpr("\"", lines, fixed = TRUE))) %% 2 == 1)
  if (length(open) > 0) usage_error(file, ":", open[1], ": a quote is opened and not closed")
  lines
}

#' Refuse lines in which something is wrong: the first of them.
#' @param data of read_data
#' @param wrong logical, a value a line; NA is wrong
#' @param say function(line) -> what is wrong, in words
refuse_lines <- function(data, wrong, say) {
  bad <- which(!wrong %in% FALSE)
  if (length(bad) > 0) usage_error(data$where[bad[1]], ": ", say(data[bad[1], ]))
}

#' Refuse a second line of the same key.
refuse_twice <- function(data, key) {
  text <- do.call(paste, c(unname(data[key]), sep = ", "))
  again <- which(duplicated(text))
  if (length(again) > 0) {
    usage_error(data$where[again[1]], ": ", text[again[1]], " is there already, in line ", match(text[again[1]], text) + 1)
  }
}

#' Numbers of a column as it was written; refuses what is none.
#' @param least smallest that is allowed
data_number <- function(data, name, least = -Inf) {
  number <- suppressWarnings(as.numeric(data[[name]]))
  refuse_lines(data, !is.na(data[[name]]) & !(is.finite(number) & number >= least), function(line) {
    paste0(name, ": expected a number", if (is.finite(least)) paste(" from", least, "on"), ", not '", line[[name]], "'")
  })
  number
}
