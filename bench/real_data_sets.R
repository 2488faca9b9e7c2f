# Real data sets, and three designs for each: what bench/real_data.R releases and fits.
#
# A row of the table: package, data set, kind of design, formula, epsilon. Bounds are declared once for each data set: what can be said of
# the variable before anybody looks (people are up to 100 years old, years at school 0 to 25, a share is from 0 to 1), not read off the data.
# Levels of factors are public, and taken from the data's own declaration. Rows with missing values in the variables of a design are
# left out. Kinds:
#
#   lm            linear regression, cross-products
#   logistic      binary response, cross-products
#   poisson, negative_binomial     counts, cross-products
#   categories    a response of three levels or more, cross-products
#   one           mean and sd of one variable, totals of it and of its square
#   together      means and covariances of several numbers, totals of them and of all products
#   table         probabilities of the cells of a table, counts
#   graph         the same where factors are independent given others, counts of the cliques
#   unsized       linear regression with an unknown number of records, and no size released

real_data_sets <- list()

# designs: kind = formula; `epsilon`: of each
data_set <- function(package, name, bounds, ..., epsilon = c(5, 5, 5), prepare = identity) {
  designs <- list(...)
  real_data_sets[[length(real_data_sets) + 1L]] <<- list(package = package, name = name, bounds = bounds, designs = designs,
                                                         epsilon = rep_len(epsilon, length(designs)), prepare = prepare)
}

years <- c(0, 100)
adult <- c(18, 100)
schooling <- c(0, 25)

# ---- work and income ----------------------------------------------------------------

data_set("carData", "Salaries", list(salary = c(30000, 300000), yrs.since.phd = c(0, 60), yrs.service = c(0, 60)),
         lm = salary ~ rank + discipline + yrs.since.phd + sex, one = ~ salary, table = ~ rank:sex)
data_set("carData", "SLID", list(wages = c(0, 100), education = schooling, age = c(15, 100)),
         lm = wages ~ education + age + sex, together = ~ wages + education + age, graph = ~ sex + language)
data_set("carData", "Mroz", list(lwg = c(-3, 5), age = c(18, 70), inc = c(0, 150), k5 = c(0, 6), k618 = c(0, 10)),
         logistic = lfp ~ k5 + age + wc + inc, lm = lwg ~ age + inc + wc, one = ~ inc)
data_set("carData", "Womenlf", list(hincome = c(0, 60)),
         categories = partic ~ hincome + children, table = ~ partic:children, one = ~ hincome)
data_set("carData", "Prestige", list(education = schooling, income = c(0, 40000), women = c(0, 100), prestige = c(0, 100)),
         lm = prestige ~ education + income + women, one = ~ prestige, together = ~ education + prestige + women)
data_set("AER", "CPSSW8", list(earnings = c(0, 100), age = c(16, 80), education = schooling),
         lm = earnings ~ gender + age + region + education, one = ~ earnings, table = ~ gender:region)
data_set("AER", "CPS1985", list(wage = c(0, 60), education = schooling, experience = c(0, 60), age = c(16, 80)),
         lm = wage ~ education + experience + gender, together = ~ wage + education + experience, graph = ~ gender:sector + sector:union)
data_set("AER", "SwissLabor", list(income = c(6, 14), age = c(1.6, 7), education = schooling, youngkids = c(0, 6), oldkids = c(0, 10)),
         logistic = participation ~ age + youngkids + foreign, lm = income ~ age + education, one = ~ income)
data_set("AER", "PSID1982", list(wage = c(0, 6000), education = schooling, experience = c(0, 60), weeks = c(0, 52)),
         lm = wage ~ education + experience + gender, one = ~ weeks, table = ~ occupation:south)
data_set("plm", "Males", list(school = schooling, exper = c(0, 60), wage = c(-4, 5)),
         lm = wage ~ school + exper + union, one = ~ wage, table = ~ ethn:union)
data_set("modeldata", "attrition", list(Age = c(16, 75), MonthlyIncome = c(0, 25000), DistanceFromHome = c(0, 50), YearsAtCompany = c(0, 50)),
         lm = MonthlyIncome ~ Age + YearsAtCompany + Gender, logistic = Attrition ~ Age + DistanceFromHome + OverTime, table = ~ Department:Gender)
data_set("AER", "TeachingRatings", list(age = c(20, 80), beauty = c(-3, 3), eval = c(1, 5), students = c(0, 600)),
         lm = eval ~ beauty + gender + age, one = ~ eval, graph = ~ gender:tenure + tenure:division)

# ---- opinions and knowledge -----------------------------------------------------------

data_set("carData", "Vocab", list(education = schooling, vocabulary = c(0, 10), year = c(1970, 2020)),
         lm = vocabulary ~ education + year + sex, one = ~ vocabulary, unsized = vocabulary ~ education)
data_set("carData", "GSSvocab", list(vocab = c(0, 10), age = adult, educ = schooling),
         lm = vocab ~ age + educ + gender, together = ~ vocab + age + educ, graph = ~ gender:nativeBorn + nativeBorn:ageGroup)
data_set("carData", "WVS", list(age = adult),
         categories = poverty ~ age + gender + religion, table = ~ poverty:country, lm = age ~ country + degree)
data_set("carData", "BEPS", list(age = adult, Europe = c(1, 11), political.knowledge = c(0, 3)),
         categories = vote ~ age + Europe, lm = Europe ~ age + political.knowledge + gender, table = ~ vote:gender)
data_set("carData", "Chile", list(age = adult, income = c(0, 300000), statusquo = c(-3, 3)),
         categories = vote ~ statusquo + sex, lm = statusquo ~ age + income + sex, table = ~ vote:education)
data_set("carData", "Cowles", list(neuroticism = c(0, 24), extraversion = c(0, 24)),
         logistic = volunteer ~ neuroticism + extraversion + sex, together = ~ neuroticism + extraversion, one = ~ neuroticism)
data_set("AER", "Affairs", list(age = adult, yearsmarried = c(0, 60), rating = c(1, 5), religiousness = c(1, 5)),
         lm = rating ~ yearsmarried + religiousness + children, one = ~ age, table = ~ gender:children)
data_set("pscl", "vote92", list(persfinance = c(-1, 1), natlecon = c(-1, 1), clintondis = c(0, 25), bushdis = c(0, 25)),
         categories = vote ~ clintondis + bushdis, lm = clintondis ~ persfinance + natlecon, one = ~ bushdis)

# ---- health ---------------------------------------------------------------------------

data_set("MASS", "birthwt", list(bwt = c(500, 5500), age = c(12, 50), lwt = c(70, 350)),
         lm = bwt ~ age + lwt + smoke, logistic = low ~ age + lwt + smoke, table = ~ race:smoke,
         prepare = function(d) transform(d, low = factor(low), race = factor(race), smoke = factor(smoke)))
data_set("MASS", "Pima.tr", list(glu = c(40, 300), bp = c(30, 150), bmi = c(12, 70), age = adult),
         logistic = type ~ glu + bmi, lm = glu ~ bmi + age, together = ~ glu + bp + bmi)
data_set("mlbench", "PimaIndiansDiabetes2", list(glucose = c(40, 300), mass = c(12, 80), age = adult, pregnant = c(0, 20), pressure = c(30, 150)),
         logistic = diabetes ~ glucose + mass + age, poisson = pregnant ~ age, lm = pressure ~ mass + age)
data_set("AER", "DoctorVisits", list(visits = c(0, 20), age = c(0, 1), income = c(0, 2), illness = c(0, 5), health = c(0, 12)),
         poisson = visits ~ illness + age + gender, lm = health ~ age + illness + private, table = ~ gender:private)
data_set("AER", "NMES1988", list(visits = c(0, 100), chronic = c(0, 10), age = c(6.5, 11), school = schooling),
         negative_binomial = visits ~ chronic + gender, lm = chronic ~ age + school, categories = health ~ chronic + age)
data_set("TH.data", "GBSG2", list(age = c(18, 100), tsize = c(0, 150), pnodes = c(0, 60), progrec = c(0, 3000)),
         lm = tsize ~ age + pnodes + menostat, one = ~ tsize, table = ~ tgrade:menostat)
data_set("survival", "pbc", list(age = c(18, 100), albumin = c(1, 6), bili = c(0, 40), platelet = c(0, 1000)),
         lm = albumin ~ age + bili + sex, one = ~ bili, together = ~ age + albumin + platelet)
data_set("survival", "flchain", list(age = c(50, 110), kappa = c(0, 30), lambda = c(0, 30), creatinine = c(0, 15)),
         lm = lambda ~ kappa + age + sex, logistic = death ~ age + sex, one = ~ creatinine,
         prepare = function(d) transform(d, death = factor(death)))
data_set("boot", "melanoma", list(age = c(0, 100), thickness = c(0, 20)),
         lm = thickness ~ age + ulcer + sex, logistic = ulcer ~ thickness + age, table = ~ ulcer:sex,
         prepare = function(d) transform(d, ulcer = factor(ulcer), sex = factor(sex)))
data_set("datasets", "infert", list(age = c(15, 50), parity = c(0, 10)),
         logistic = case ~ spontaneous + age, lm = parity ~ age + education, table = ~ education:case,
         prepare = function(d) transform(d, case = factor(case), spontaneous = factor(spontaneous)))
data_set("mlmRev", "Contraception", list(age = c(-20, 25)),
         logistic = use ~ age + urban + livch, table = ~ livch:use, lm = age ~ urban + livch)
data_set("carData", "Davis", list(weight = c(30, 200), height = c(120, 220), repwt = c(30, 200)),
         lm = weight ~ height + sex, together = ~ weight + height, one = ~ weight)

# ---- schools ---------------------------------------------------------------------------

data_set("AER", "CASchools", list(math = c(500, 800), read = c(500, 800), lunch = c(0, 100), income = c(0, 100), english = c(0, 100)),
         lm = math ~ lunch + english + income, together = ~ math + read + lunch, one = ~ english)
data_set("mlmRev", "Exam", list(normexam = c(-4, 4), standLRT = c(-4, 4)),
         lm = normexam ~ standLRT + sex + vr, together = ~ normexam + standLRT, table = ~ vr:sex)
data_set("mlmRev", "Hsb82", list(mAch = c(-5, 30), ses = c(-4, 4)),
         lm = mAch ~ ses + minrty + sector, one = ~ mAch, graph = ~ minrty:sector + sector:sx)
data_set("MASS", "quine", list(Days = c(0, 200)),
         negative_binomial = Days ~ Eth + Age, one = ~ Days, table = ~ Age:Lrn)

# ---- nature ------------------------------------------------------------------------------

data_set("datasets", "iris", list(Sepal.Length = c(0, 10), Sepal.Width = c(0, 10), Petal.Length = c(0, 10), Petal.Width = c(0, 5)),
         lm = Sepal.Length ~ Petal.Length + Species, together = ~ Sepal.Length + Sepal.Width + Petal.Length, unsized = Petal.Width ~ Petal.Length)
data_set("modeldata", "penguins", list(bill_length_mm = c(20, 80), bill_depth_mm = c(5, 30), flipper_length_mm = c(100, 300), body_mass_g = c(1500, 8000)),
         lm = body_mass_g ~ flipper_length_mm + species + sex, categories = species ~ flipper_length_mm, table = ~ species:island)
data_set("MASS", "crabs", list(FL = c(0, 50), RW = c(0, 50), CL = c(0, 80), CW = c(0, 80)),
         lm = CW ~ FL + RW + sp, together = ~ FL + RW + CL, logistic = sex ~ RW + CL)
data_set("datasets", "quakes", list(depth = c(0, 700), mag = c(4, 8), stations = c(0, 200)),
         one = ~ depth, lm = stations ~ mag + depth, together = ~ depth + mag)
data_set("datasets", "airquality", list(Ozone = c(0, 300), Temp = c(30, 120), Wind = c(0, 40), Solar.R = c(0, 500)),
         lm = Ozone ~ Temp + Wind, together = ~ Temp + Wind + Solar.R, one = ~ Ozone)
data_set("robustbase", "NOxEmissions", list(LNOx = c(-2, 8), LNOxEm = c(2, 10), sqrtWS = c(0, 6)),
         lm = LNOx ~ LNOxEm + sqrtWS, together = ~ LNOx + LNOxEm + sqrtWS, unsized = LNOx ~ sqrtWS)

# ---- money, houses, things ------------------------------------------------------------------

data_set("AER", "CreditCard", list(reports = c(0, 14), age = c(0, 100), income = c(0, 20), dependents = c(0, 10)),
         logistic = card ~ reports, lm = income ~ age + dependents + owner, table = ~ card:owner, epsilon = c(20, 5, 5))
data_set("AER", "HMDA", list(pirat = c(0, 3), lvrat = c(0, 2)),
         logistic = deny ~ pirat + lvrat + afam, table = ~ deny:afam, lm = lvrat ~ pirat + single)
data_set("modeldata", "credit_data", list(Age = adult, Income = c(0, 1000), Amount = c(0, 5000), Price = c(0, 12000), Expenses = c(0, 300)),
         lm = Amount ~ Price + Income + Records, logistic = Status ~ Amount + Income, table = ~ Status:Home)
data_set("AER", "HousePrices", list(price = c(0, 300000), lotsize = c(0, 20000), bedrooms = c(0, 10)),
         lm = price ~ lotsize + bedrooms + aircon, together = ~ price + lotsize, graph = ~ aircon:prefer + prefer:driveway)
data_set("modeldata", "ames", list(Sale_Price = c(0, 1000000), Gr_Liv_Area = c(0, 8000), Year_Built = c(1850, 2020), Lot_Area = c(0, 300000)),
         lm = Sale_Price ~ Gr_Liv_Area + Year_Built, one = ~ Lot_Area, table = ~ Street:Central_Air)
data_set("ggplot2", "diamonds", list(price = c(0, 20000), carat = c(0, 6), depth = c(0, 100), table = c(0, 100)),
         lm = price ~ carat + depth, one = ~ price, table = ~ cut:color, prepare = as.data.frame)
data_set("MASS", "Boston", list(medv = c(0, 60), rm = c(0, 12), lstat = c(0, 100), crim = c(0, 100), tax = c(0, 1000)),
         lm = medv ~ rm + lstat, one = ~ crim, together = ~ medv + rm + tax)
data_set("reshape2", "tips", list(total_bill = c(0, 100), tip = c(0, 20), size = c(1, 10)),
         lm = tip ~ total_bill + smoker + size, one = ~ tip, table = ~ day:time)
data_set("carData", "Arrests", list(age = c(10, 100), checks = c(0, 6), year = c(1997, 2002)),
         logistic = released ~ age + colour + checks, lm = checks ~ age + colour + sex, graph = ~ colour:released + released:employed)
data_set("carData", "TitanicSurvival", list(age = years),
         logistic = survived ~ sex + age + passengerClass, table = ~ survived:sex:passengerClass, one = ~ age)

# ---- met for the first time on 30 November 2026 -----------------------------------------

data_set("AER", "GSOEP9402", list(income = c(0, 300000), size = c(1, 15), birthyear = c(1970, 1990), meducation = schooling),
         categories = school ~ meducation + size, lm = size ~ meducation + gender, table = ~ school:marital, epsilon = c(5, 3, 1))
data_set("MASS", "nlschools", list(lang = c(0, 60), IQ = c(0, 20), SES = c(0, 60), GS = c(5, 50)),
         lm = lang ~ IQ + SES + COMB, together = ~ lang + IQ + SES, unsized = lang ~ IQ + SES, epsilon = c(1, 1, 2))
data_set("datasets", "ToothGrowth", list(len = c(0, 40), dose = c(0, 3)),
         lm = len ~ supp + dose, one = ~ len, epsilon = c(5, 2))
data_set("datasets", "warpbreaks", list(breaks = c(0, 100)),
         lm = breaks ~ wool + tension, negative_binomial = breaks ~ wool + tension, epsilon = c(5, 8))
data_set("survival", "lung", list(time = c(0, 2000), age = adult, ph.karno = c(0, 100), wt.loss = c(-50, 100)),
         lm = wt.loss ~ age + ph.karno, one = ~ time, together = ~ age + ph.karno + wt.loss, epsilon = c(5, 3, 5))
data_set("rpart", "kyphosis", list(Age = c(0, 250), Number = c(1, 15), Start = c(0, 20)),
         logistic = Kyphosis ~ Age + Number + Start, lm = Start ~ Age + Number, epsilon = c(10, 5))
data_set("pscl", "bioChemists", list(art = c(0, 30), kid5 = c(0, 5), phd = c(0, 5), ment = c(0, 100)),
         negative_binomial = art ~ fem + mar + kid5, poisson = art ~ fem + mar + kid5, lm = ment ~ phd + fem, epsilon = c(5, 5, 5))
data_set("plm", "Hedonic", list(mv = c(8, 12), rm = c(0, 100), nox = c(0, 100), lstat = c(-4, 0)),
         lm = mv ~ rm + nox + lstat, together = ~ mv + rm + lstat, epsilon = c(5, 5))
data_set("nlme", "MathAchieve", list(MathAch = c(-5, 30), SES = c(-4, 4)),
         lm = MathAch ~ SES + Sex + Minority, table = ~ Minority:Sex, one = ~ MathAch, epsilon = c(1, 0.5, 1))
data_set("survey", "api", list(api00 = c(200, 1000), meals = c(0, 100), ell = c(0, 100)),
         lm = api00 ~ meals + ell + stype, together = ~ api00 + meals + ell, epsilon = c(3, 3))
data_set("datasets", "esoph", list(ncontrols = c(0, 100)),
         table = ~ agegp:alcgp, epsilon = 2)
data_set("datasets", "swiss", list(Fertility = c(0, 150), Agriculture = c(0, 100), Education = c(0, 100), Catholic = c(0, 100)),
         lm = Fertility ~ Agriculture + Education + Catholic, one = ~ Catholic, epsilon = c(20, 5))

# ---- what is released and fitted ---------------------------------------------------------------

# the records of a design, without missing values
read_set <- function(set, formula) {
  there <- new.env()
  suppressWarnings(utils::data(list = set$name, package = set$package, envir = there))
  if (!exists(set$name, there)) { # of a file with several data sets, or lazily loaded
    loaded <- tryCatch(getExportedValue(set$package, set$name), error = function(e) NULL)
    if (is.null(loaded)) return(NULL)
    assign(set$name, loaded, there)
  }
  data <- stats::na.omit(set$prepare(as.data.frame(get(set$name, there)))[all.vars(formula)])
  data[] <- lapply(data, function(v) if (is.factor(v)) factor(v, levels(v)) else if (is.character(v) || is.logical(v)) factor(v) else as.double(v))
  data
}

# bounds of the numbers, levels of the factors
declared <- function(set, data, variables) {
  stats::setNames(lapply(variables, function(v) if (v %in% names(set$bounds)) set$bounds[[v]] else levels(factor(data[[v]]))), variables)
}

design_of <- function(set, kind, formula, data, outside = "clamp") {
  variables <- all.vars(formula)
  bounds <- declared(set, data, variables)
  # all totals of degree 1 and 2
  products <- function(v) stats::reformulate(c(v, unlist(lapply(seq_along(v), function(j) sprintf("I(%s * %s)", v[j], v[j:length(v)])))))
  statistic <- switch(kind, one = , together = stat_sums(products(variables), bounds, outside = outside), table = , graph = stat_counts(formula, bounds),
                      stat_crossprod(formula, bounds, outside = outside))
  model <- switch(kind, lm = , unsized = model_lm(), logistic = model_logistic(), poisson = model_glm(family = poisson()),
                  negative_binomial = model_glm(family = "negative_binomial"), categories = model_glm(family = "categorical"),
                  one = model_normal(), together = model_mvnormal(), table = , graph = model_table(formula))
  list(model = model, statistic = statistic, neighbours = if (kind == "unsized") "add_remove" else "replace")
}
