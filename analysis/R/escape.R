# Text from data (names, paths, reasons) made safe for where it is printed.

#' Replace what pdflatex and gnuplot's fonts may lack by ASCII, and control characters by a space.
#' @param text character vector
#' @return character vector of printable ASCII
to_ascii <- function(text) {
  text <- iconv(enc2utf8(as.character(text)), "UTF-8", "ASCII//TRANSLIT", sub = "?")
  gsub("[[:cntrl:]]+", " ", text)
}

TEX_SPECIAL <- c(
  "\\" = "\\textbackslash{}", "{" = "\\{", "}" = "\\}", "&" = "\\&", "%" = "\\%", "$" = "\\$",
  "#" = "\\#", "_" = "\\_", "~" = "\\textasciitilde{}", "^" = "\\textasciicircum{}",
  "<" = "\\textless{}", ">" = "\\textgreater{}", "|" = "\\textbar{}", "\"" = "\\textquotedbl{}"
)

#' Escape text for LaTeX: every special character in one pass, so that nothing is escaped twice.
#' @param text character vector
#' @return character vector; NA stays NA
tex_escape <- function(text) {
  vapply(as.character(text), function(one) {
    if (is.na(one)) return(NA_character_)
    chars <- strsplit(to_ascii(one), "")[[1]]
    special <- chars %in% names(TEX_SPECIAL)
    chars[special] <- TEX_SPECIAL[chars[special]]
    # Two hyphens would print as a dash, and an option of a command could not be pasted.
    gsub("-(?=-)", "-{}", paste(chars, collapse = ""), perl = TRUE)
  }, "", USE.NAMES = FALSE)
}

#' Escape a path or hash for LaTeX in typewriter, with places to break the line.
tex_path <- function(text) {
  escaped <- tex_escape(text)
  escaped <- gsub("([/.-])", "\\1\\\\allowbreak{}", escaped)
  escaped <- gsub("([0-9a-f]{8})(?=[0-9a-f])", "\\1\\\\allowbreak{}", escaped, perl = TRUE)
  ifelse(is.na(escaped) | escaped == "", "", paste0("\\texttt{", escaped, "}"))
}

#' A gnuplot string literal: single quotes, in which only the quote itself needs doubling.
#' The terminals run without enhanced text, so _ ^ @ { } print as they are.
gnuplot_string <- function(text) {
  paste0("'", gsub("'", "''", to_ascii(text), fixed = TRUE), "'")
}

#' A tic label: gnuplot reads % in it as a number format.
gnuplot_tic <- function(text) gnuplot_string(gsub("%", "%%", to_ascii(text), fixed = TRUE))

#' Cut a text that is too long for its place.
shorten <- function(text, width) ifelse(nchar(text) > width, paste0(substr(text, 1, width - 3), "..."), text)
