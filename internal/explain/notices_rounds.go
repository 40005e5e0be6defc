package explain

// roundsNotices are those of rounds, sweeps and comparisons.
var roundsNotices = []Topic{
	{
		Word: "rounds-unsettled",
		Text: "With --rounds auto the figures had not settled after ten rounds: half the confidence interval of the median was still more than 2.5 % of it. The median stands, and the path changes more than that from round to round.",
		Do:   "Look at the rounds by themselves: a trend, two levels or single outliers have different reasons. Longer rounds (-t) average more.",
		See:  []string{"settled", "marked"},
	},
	{
		Word: "knee-not-reached",
		Text: "The rate still grew by 5 % or more for a doubling at the largest setting that was tried, after the sweep had gone further twice: the knee lies beyond.",
		Do:   "Try more: --over 32..128, or another window.",
		See:  []string{"reached", "knee"},
	},
	{
		Word: "not-alike",
		Text: "The two sides of a comparison were not measured with the same settings: streams, window, length, rate and so on. The difference between their figures may be the difference of the settings.",
		Do:   "Measure both sides with the same words, or in turn: fullbore compare --ab.",
		See:  []string{"differences"},
	},
	{
		Word: "too-few-rounds",
		Text: "A side of a comparison has fewer than four rounds. No test can reach p < 0.05 with so few (three against three: 0.1 at least), so the threshold decides alone.",
		Do:   "Measure with --rounds 5 on both sides.",
		See:  []string{"too_few", "p"},
	},
}
