# Numbers in prose: what is left of a text once code, macros and generated parts are out, and the numbers in that.

NUMBER_WORDS <- c("three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "twenty", "hundred",
                  "hundreds", "thousand", "thousands", "million", "millions", "billion", "twice", "double", "half", "tenfold")
NUMBER <- paste0("\\b(", paste(NUMBER_WORDS, collapse = "|"), ")\\b|[0-9][0-9.,]*[0-9]|[0-9]")

#' The prose of a LaTeX file: from the title on, without comments, labels, references and commands of layout.
latex_prose <- function(lines) {
  lines <- lines[seq(grep("^\\\\title", lines)[1], length(lines))]
  text <- paste(sub("(^|[^\\\\])%.*$", "\\1", lines), collapse = " ")
  layout <- "label|ref|figurebody|tablebody|cite|begin|end|bibliographystyle|bibliography"
  text <- gsub(paste0("\\\\(", layout, ")\\{[^}]*\\}(\\[[^]]*\\])?"), "", text)
  gsub(" +", " ", text)
}

#' The prose of a Markdown file: without code (blocks and inline), addresses of links, and what stands between generated marks.
markdown_prose <- function(lines) {
  inside <- 0
  keep <- rep(TRUE, length(lines))
  for (i in seq_along(lines)) {
    if (grepl("^<!-- [a-z]+:begin -->$", lines[i])) inside <- 1
    keep[i] <- inside == 0 && !grepl("^ {4}", lines[i])
    if (grepl("^<!-- [a-z]+:end -->$", lines[i])) inside <- 0
  }
  text <- paste(sub("^ *[0-9]+[.] ", "", lines[keep]), collapse = " ")
  text <- gsub("`[^`]*`", "", text)
  text <- gsub("\\]\\([^)]*\\)", "]", text)
  gsub(" +", " ", text)
}

#' The numbers of a text, each with some words around it.
numbers_in <- function(text) {
  at <- gregexpr(NUMBER, text, perl = TRUE, ignore.case = TRUE)[[1]]
  if (at[1] == -1) return(character())
  trimws(substring(text, pmax(1, at - 30), at + attr(at, "match.length") + 29))
}

#' A text without what is allowed in it.
#' @param allowed character: texts with their numbers; the longest goes first
without_allowed <- function(text, allowed) {
  for (one in allowed[order(-nchar(allowed))]) text <- gsub(one, "", text, fixed = TRUE)
  text
}
