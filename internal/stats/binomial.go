package stats

import "math"

// RuleOfThree returns the upper bound at 95 % of a proportion of which n trials showed
// none: 3/n, at most 1. n must be positive.
func RuleOfThree(n int64) float64 { return math.Min(1, 3/float64(n)) }

// ClopperPearson returns the exact interval (Clopper and Pearson 1934) of a proportion
// of which k of n trials showed: the ends are those proportions p for which so many or
// more, so many or fewer, have the probability (1−level)/2. It is good to 9 digits for
// any k up to n = 10^12. ok is false when there is no such k, n or level.
func ClopperPearson(k, n int64, level float64) (low, high float64, ok bool) {
	if n <= 0 || k < 0 || k > n || !(level > 0 && level < 1) {
		return 0, 0, false
	}
	alpha := (1 - level) / 2
	return proportion(k, n, alpha, true), proportion(k, n, alpha, false), true
}

// proportion finds p with P(X ≥ k) = alpha (above) or P(X ≤ k) = alpha, X ~ Bin(n, p).
func proportion(k, n int64, alpha float64, above bool) float64 {
	K, N := float64(k), float64(n)
	switch {
	case above && k == 0:
		return 0
	case !above && k == n:
		return 1
	case above && k == n:
		return math.Pow(alpha, 1/N)
	case !above && k == 0:
		return -math.Expm1(math.Log(alpha) / N)
	}
	// Newton in log p on the log of the tail, which is concave there, kept in the bracket.
	lo, hi := 0.0, K/N
	if !above {
		lo, hi = hi, 1
	}
	p := wilson(K, N, alpha, above)
	target := math.Log(alpha)
	for range 100 {
		if !(p > lo && p < hi) {
			p = lo + (hi-lo)/2
		}
		pmf := binomialPMF(K, N, p)
		tail := 0.0
		if above {
			tail = K * pmf * tailIntegral(K, N-K, p, 1-p)
		} else {
			tail = (N - K) * pmf * tailIntegral(N-K, K, 1-p, p)
		}
		f := math.Log(tail) - target
		if (f > 0) == above {
			hi = p
		} else {
			lo = p
		}
		// d tail/dp is k·pmf/p for the upper tail, −(n−k)·pmf/(1−p) for the lower one.
		slope := K * pmf / p / tail
		if !above {
			slope = -(N - K) * pmf / (1 - p) / tail
		}
		step := f / slope
		next := p - step
		if math.Abs(step) <= 1e-14*p || !(hi-lo > 1e-15*p) {
			return p
		}
		p = next
	}
	return p
}

// wilson is the end of the score interval, a first guess.
func wilson(k, n, alpha float64, low bool) float64 {
	z := math.Sqrt2 * math.Erfinv(1-2*alpha)
	p := k / n
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	if low {
		half = -half
	}
	return (p + z*z/(2*n) + half) / (1 + z*z/n)
}

// tailIntegral is ∫₀^∞ exp(−k·u + m·log1p(p(1−e^−u)/q)) du with q = 1−p. From
// P(X ≥ k) = I_p(k, n−k+1), the incomplete beta integral with t = p·e^−u, follows
// P(X ≥ k) = k·P(X = k)·tailIntegral(k, n−k, p, q): every term keeps its relative
// precision however large n is, where a continued fraction takes √n steps. It is for
// p < k/n, where the integrand falls from 1 and is log-concave.
func tailIntegral(k, m, p, q float64) float64 {
	odds := p / q
	g := func(u float64) float64 { return -k*u + m*math.Log1p(-odds*math.Expm1(-u)) }
	// Where the integrand is below e^−40 of its start nothing is left.
	end := 1 / k
	for g(end) > -40 {
		end *= 2
	}
	const panels = 24
	h := end / panels
	sum := 0.0
	for i := range panels {
		mid := (float64(i) + 0.5) * h
		for j, x := range gaussNodes {
			sum += gaussWeights[j] * (math.Exp(g(mid+h/2*x)) + math.Exp(g(mid-h/2*x)))
		}
	}
	return sum * h / 2
}

// Gauss–Legendre, 8 points (the positive half), Abramowitz and Stegun table 25.4.
var (
	gaussNodes   = [...]float64{0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363}
	gaussWeights = [...]float64{0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763}
)

// binomialPMF is P(X = k), X ~ Bin(n, p), 0 < k < n, by Loader's saddle-point form
// (C. Loader 2000, "Fast and Accurate Computation of Binomial Probabilities"), which does
// not take differences of huge logarithms.
func binomialPMF(k, n, p float64) float64 {
	q := 1 - p
	lc := stirlingError(n) - stirlingError(k) - stirlingError(n-k) - deviance(k, n*p) - deviance(n-k, n*q)
	return math.Exp(lc) * math.Sqrt(n/(2*math.Pi*k*(n-k)))
}

// deviance is x·log(x/np) + np − x, by its series where x is near np.
func deviance(x, np float64) float64 {
	if math.Abs(x-np) >= 0.1*(x+np) {
		return x*math.Log(x/np) + np - x
	}
	v := (x - np) / (x + np)
	s := (x - np) * v
	term := 2 * x * v
	for j := 1; j < 1000; j++ {
		term *= v * v
		next := s + term/float64(2*j+1)
		if next == s {
			break
		}
		s = next
	}
	return s
}

// stirlingError is log(n!) less Stirling's formula √(2πn)·(n/e)^n.
func stirlingError(n float64) float64 {
	if n < 16 {
		l, _ := math.Lgamma(n + 1)
		return l - (n+0.5)*math.Log(n) + n - 0.5*math.Log(2*math.Pi)
	}
	r := 1 / (n * n)
	return (1.0/12 - r*(1.0/360-r*(1.0/1260-r*(1.0/1680-r/1188)))) / n
}
