# Checks of a source by its own numbers: "the values give 31 %, the text says 68 %"; Little's and Amdahl's laws.
#
# A check is LEFT RELATION RIGHT. Both sides are formulas over published values, written as data (paper/hypotheses.csv):
#   ID.ALLOCATOR[.MEASUREMENT][.low|.high]   a line of claim_values.csv (without MEASUREMENT the first; without the last
#                                            word the middle of low and high)
#   condition.KEY                            a number of conditions.csv, of the claim's own source
#   numbers, + - * / ( ) and mean(...)
# A printed value stands for all that round to it: 4.18 for 4.175 to 4.185. The sides are evaluated at the ends of these
# ranges, and a check holds where the sides can meet. Conditions and numbers within a formula are exact; a side that is a
# number alone is printed text, and rounded.

ARITHMETIC_CALLS <- c("+", "-", "*", "/", "(", "mean")
RELATIONS <- c("=", "<=", ">=")
ARITHMETIC_MOST_VALUES <- 8 # in one check: its corners are 2^n

#' Half a unit of the last printed digit: what rounding may have hidden.
#' @param text a number as it was printed
half_unit <- function(text) {
  decimals <- ifelse(grepl(".", text, fixed = TRUE), nchar(sub("^[^.]*[.]", "", text)), 0)
  0.5 * 10^-decimals
}

#' TRUE for a side that is a number alone.
is_number <- function(text) grepl("^-?[0-9]+([.][0-9]+)?$", text)

#' Parse a side and refuse what is no arithmetic.
#' @param where file:line, for the message
#' @return an R expression of ARITHMETIC_CALLS, numbers and names
parse_side <- function(text, where) {
  expression <- tryCatch(parse(text = text, keep.source = FALSE), error = function(e) NULL)
  if (length(expression) != 1) usage_error(where, ": not a formula: '", text, "'")
  known <- function(part) {
    if (is.numeric(part) || is.name(part)) return(TRUE)
    is.call(part) && as.character(part[[1]])[1] %in% ARITHMETIC_CALLS && all(vapply(as.list(part)[-1], known, NA))
  }
  if (!known(expression[[1]])) {
    usage_error(where, ": '", text, "': expected numbers, published values, + - * / ( ) and mean()")
  }
  expression[[1]]
}

#' The published value that a name in a formula stands for.
#' @param name as described above
#' @param source whose conditions count
#' @return list(value, half = what rounding may have hidden)
published_reference <- function(name, claims, source, where) {
  if (startsWith(name, "condition.")) {
    own <- claims$conditions[claims$conditions$source == source & paste0("condition.", claims$conditions$key) == name, ]
    value <- suppressWarnings(as.numeric(own$value))
    if (length(value) != 1 || is.na(value)) {
      usage_error(where, ": ", name, ": conditions.csv has no such number for the source '", source, "'")
    }
    return(list(value = value, half = 0))
  }
  end <- regmatches(name, regexpr("[.](low|high)$", name))
  stem <- sub("[.](low|high)$", "", name)
  v <- claims$values
  v <- v[paste(v$id, v$allocator, v$measurement, sep = ".") == stem |
           (v$measurement == 1 & paste(v$id, v$allocator, sep = ".") == stem), , drop = FALSE]
  if (nrow(v) != 1) usage_error(where, ": ", name, ": no such value in claim_values.csv")
  text <- switch(if (length(end) > 0) end else "middle", .low = v$low_text, .high = v$high_text, c(v$low_text, v$high_text))
  if (anyNA(text)) usage_error(where, ": ", name, ": the value is empty in claim_values.csv")
  list(value = mean(as.numeric(text)), half = max(half_unit(text)))
}

#' A side at its printed values and at the ends of their ranges.
#' @return list(value, low, high)
evaluate_side <- function(text, claims, source, where) {
  if (is_number(text)) {
    half <- half_unit(text)
    return(list(value = as.numeric(text), low = as.numeric(text) - half, high = as.numeric(text) + half))
  }
  side <- parse_side(text, where)
  names <- sort(all.vars(side), method = "radix")
  if (length(names) > ARITHMETIC_MOST_VALUES) {
    usage_error(where, ": '", text, "': more than ", ARITHMETIC_MOST_VALUES, " values")
  }
  refs <- lapply(stats::setNames(names, names), published_reference, claims, source, where)
  calls <- list2env(list(mean = function(...) mean(c(...))), parent = baseenv())
  at <- function(sign) {
    eval(side, Map(function(ref, s) ref$value + s * ref$half, refs, sign), calls)
  }
  corners <- if (length(refs) > 0) apply(expand.grid(rep(list(c(-1, 1)), length(refs))), 1, function(s) at(as.list(s)))
             else at(list())
  list(value = at(as.list(rep(0, length(refs)))), low = min(corners), high = max(corners))
}

#' Check one line.
#' @param check row of hypotheses.csv with left, relation, right, margin, words, where
#' @param source of the claim
#' @return list(outcome = "holds", "within margin" or "breaks"; left, right = values; text)
check_arithmetic <- function(check, claims, source) {
  left <- evaluate_side(check$left, claims, source, check$where)
  right <- evaluate_side(check$right, claims, source, check$where)
  holds <- switch(check$relation, "=" = left$low <= right$high && right$low <= left$high,
                  "<=" = left$low <= right$high, ">=" = left$high >= right$low)
  near <- is.finite(check$margin) && abs(left$value - right$value) <= check$margin * abs(right$value)
  outcome <- if (holds) "holds" else if (near) "within margin" else "breaks"
  words <- sub("{left}", number_text(left$value), check$words, fixed = TRUE)
  words <- sub("{right}", if (is_number(check$right)) check$right else number_text(right$value), words, fixed = TRUE)
  text <- paste0(words, switch(outcome, holds = ": holds", breaks = ": does not hold",
                               paste0(": holds within ", number_text(100 * check$margin, 2), " %")))
  list(outcome = outcome, left = left$value, right = right$value, text = text)
}
