# Reflections of records that a release does not distinguish: src/records/reflections.c.

# Up to so many columns every set of them is tried.
most_reflected <- 10L

# Sets of columns that every published component is even in, together: `columns` has a row for each column of the model and a 1 where a set,
# a column, has it; `origin` the points at which columns are reflected, those that powers are about. NULL: there are none.
record_reflections <- function(bound, parts) {
  design <- surrogate_design(bound)
  free <- utils::head(design$name[design$role == "free"], most_reflected)
  powers <- lapply(parts, published_powers, free)
  if (length(free) == 0L || any(vapply(powers, is.null, TRUE))) return(NULL)
  odd <- do.call(rbind, powers) %% 2
  origins <- lapply(stats::setNames(nm = free), function(name) unique(unlist(lapply(parts, origin_of, name))))
  # a column that no component has, or that components have powers of about different points, stays
  can <- lengths(origins) == 1L
  sets <- t(as.matrix(expand.grid(rep(list(0:1), length(free)))))
  even <- colSums((odd %*% sets) %% 2) == 0 & colSums(sets * !can) == 0 & colSums(sets) > 0
  if (!any(even)) return(NULL)
  columns <- matrix(0, nrow(bound$columns), sum(even))
  at <- match(free, bound$columns$name)
  columns[at, ] <- sets[, even]
  turned <- replace(logical(nrow(columns)), at[can], TRUE)
  c(list(columns = columns, origin = replace(numeric(nrow(columns)), turned, unlist(origins[can]))),
    record_turns(bound, design, do.call(rbind, powers)[, can, drop = FALSE], turned))
}

# Does every published component have the degree two in the columns that are turned (src/records/second_moments.c), and is nothing else published?
# `unit`: half the range of each of them, 0 for the others; `stretch`: 1 where the column's square is not published.
record_turns <- function(bound, design, powers, turned) {
  turns <- all(design$role == "free") && nrow(design) <= most_reflected && all(rowSums(powers) == 2)
  unit <- default_unit((bound$columns$upper - bound$columns$lower) / 2)
  squares <- colSums(powers == 2) > 0
  list(turns = as.double(turns), unit = ifelse(turned, unit, 0), stretch = replace(numeric(nrow(bound$columns)), turned, as.double(!squares)))
}

# Of a part's published components, a row each, the powers of these columns; NULL where a component is no product of powers.
published_powers <- function(part, names) {
  powers <- component_powers(part$statistic)
  if (is.null(powers) || ncol(powers) != nrow(part$statistic$columns)) return(NULL)
  powers <- cbind(powers, 0)[part$at, , drop = FALSE]
  powers[, match(names, part$statistic$columns$name, nomatch = ncol(powers)), drop = FALSE]
}

# a column's origin in a part that has powers of it
origin_of <- function(part, name) {
  column <- match(name, part$statistic$columns$name)
  if (is.na(column) || !any(component_powers(part$statistic)[part$at, column] > 0)) return(NULL)
  if (inherits(part$statistic, "stat_centred")) return(part$statistic$centre[[name]])
  if (isTRUE(part$statistic$rescale) && !is_dropped(part$statistic)) with(part$statistic$columns[column, ], (lower + upper) / 2) else 0
}

# The powers of the columns in each component, a row each; NULL where components are other functions.
component_powers <- function(statistic) {
  if (inherits(statistic, c("stat_sums", "stat_products", "stat_moments4"))) return(statistic$powers)
  if (inherits(statistic, c("stat_counts", "stat_size"))) return(matrix(0, length(statistic$components), nrow(statistic$columns)))
  if (!inherits(statistic, "stat_crossprod")) return(NULL)
  one <- diag(nrow(statistic$columns))
  rbind(one, one[statistic$pairs$first, , drop = FALSE] + one[statistic$pairs$second, , drop = FALSE])
}

# Of methods that make no such moves: means that no chain has on both sides of their mirror.
mirror_trouble <- function(fit) {
  if (is_pooled(fit) || engine_imputes(engine_of(fit)) || is.null(fit$chains) || has_record_noise(fit$release)) return(NULL)
  reflections <- record_reflections(fit$bound, component_parts(fit$release))
  if (is.null(reflections)) return(NULL)
  at <- which(rowSums(reflections$columns) > 0)
  names <- sprintf("mean[%s]", fit$bound$columns$name[at])
  if (length(at) == 1L) names <- intersect(c("mean", names), posterior::variables(fit$draws))
  known <- names %in% posterior::variables(fit$draws)
  stays <- vapply(which(known), function(k) {
    beyond <- posterior::extract_variable_matrix(fit$draws, names[k]) > reflections$origin[at[min(k, length(at))]]
    all(colMeans(beyond) %in% 0:1)
  }, TRUE)
  if (!any(stays)) return(NULL)
  list(list(kind = "mirror", text = c(
    sprintf("The release is the same for records mirrored at %s, and no chain reached the other side: %s.",
            shorten_list(format_number(unique(reflections$origin[at]), 6), 3L), shorten_list(names[known][stays], 5L)),
    x = "Unless the prior rules it out, half of the posterior may be missing; R-hat does not detect this.",
    i = "Method \"augment\" reflects records, and reaches both sides.")))
}
