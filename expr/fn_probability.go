package expr

import "math"

func init() {
	def("normal_cdf", "(double, double, double) double", "the chance that a normal variable of a mean and standard deviation is not above a value", fn3(func(_ *evalCall, mean, sd, v float64) (float64, error) {
		if !(sd > 0) {
			return 0, badArgument("normal_cdf: the standard deviation must be above 0, not %v", sd)
		}
		return 0.5 * math.Erfc((mean-v)/(sd*math.Sqrt2)), nil
	}))
	def("inverse_normal_cdf", "(double, double, double) double", "the value that a normal variable of a mean and standard deviation stays below with a chance", fn3(func(_ *evalCall, mean, sd, p float64) (float64, error) {
		switch {
		case !(p > 0 && p < 1):
			return 0, badArgument("inverse_normal_cdf: the chance must be between 0 and 1, not %v", p)
		case !(sd > 0):
			return 0, badArgument("inverse_normal_cdf: the standard deviation must be above 0, not %v", sd)
		}
		return mean + sd*math.Sqrt2*math.Erfinv(2*p-1), nil
	}))
	def("beta_cdf", "(double, double, double) double", "the chance that a beta variable of a and b is not above a value", fn3(func(_ *evalCall, a, b, v float64) (float64, error) {
		if err := betaArguments("beta_cdf", a, b, v); err != nil {
			return 0, err
		}
		return incompleteBeta(a, b, v), nil
	}))
	def("inverse_beta_cdf", "(double, double, double) double", "the value that a beta variable of a and b stays below with a chance", fn3(func(_ *evalCall, a, b, p float64) (float64, error) {
		if err := betaArguments("inverse_beta_cdf", a, b, p); err != nil {
			return 0, err
		}
		// The function grows with its argument, so halving the interval always arrives.
		lo, hi := 0.0, 1.0
		for range 1100 {
			x := lo + (hi-lo)/2
			if x <= lo || x >= hi {
				break
			}
			if incompleteBeta(a, b, x) < p {
				lo = x
			} else {
				hi = x
			}
		}
		if p == 0 {
			return 0, nil
		}
		return hi, nil
	}))
	freedom := func(name string, df float64) error {
		if !(df >= 1) {
			return badArgument("%s: the degrees of freedom must be at least 1, not %v", name, df)
		}
		return nil
	}
	def("t_cdf", "(double, double) double", "the chance that a variable of Student's t with degrees of freedom is not above a value", fn2(func(_ *evalCall, x, df float64) (float64, error) {
		if err := freedom("t_cdf", df); err != nil || x != x {
			return x, err
		}
		tail := 0.5 * incompleteBeta(df/2, 0.5, df/(df+x*x))
		if x > 0 {
			return 1 - tail, nil
		}
		return tail, nil
	}))
	def("t_pdf", "(double, double) double", "the density of Student's t with degrees of freedom", fn2(func(_ *evalCall, x, df float64) (float64, error) {
		if err := freedom("t_pdf", df); err != nil {
			return 0, err
		}
		a, _ := math.Lgamma((df + 1) / 2)
		b, _ := math.Lgamma(df / 2)
		return math.Exp(a-b-0.5*math.Log(df*math.Pi)) * math.Pow(1+x*x/df, -(df+1)/2), nil
	}))
	wilson := func(name, doc string, side float64) {
		def(name, "(bigint, bigint, double) double", doc, fn3(func(_ *evalCall, successes, trials int64, z float64) (float64, error) {
			switch {
			case successes < 0:
				return 0, badArgument("%s: the number of successes must not be negative", name)
			case trials <= 0:
				return 0, badArgument("%s: the number of trials must be positive", name)
			case successes > trials:
				return 0, badArgument("%s: there are more successes than trials", name)
			case !(z >= 0):
				return 0, badArgument("%s: the z-score must not be negative", name)
			}
			n := float64(trials)
			p := float64(successes) / n
			middle := p + z*z/(2*n)
			half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
			return (middle + side*half) / (1 + z*z/n), nil
		}))
	}
	wilson("wilson_interval_lower", "the lower end of Wilson's interval for a share of successes among trials, with a z-score", -1)
	wilson("wilson_interval_upper", "the upper end of Wilson's interval for a share of successes among trials, with a z-score", 1)
}

func betaArguments(name string, a, b, v float64) error {
	switch {
	case !(a > 0 && b > 0):
		return badArgument("%s: a and b must be above 0, not %v and %v", name, a, b)
	case !(v >= 0 && v <= 1):
		return badArgument("%s: the third argument must be from 0 to 1, not %v", name, v)
	}
	return nil
}

// incompleteBeta is the regularised incomplete beta function of a, b > 0 and x in 0..1, by its continued fraction (NIST DLMF
// 8.17.22), evaluated with Lentz's method where it converges quickly and by symmetry elsewhere.
func incompleteBeta(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - incompleteBeta1(b, a, 1-x)
	}
	return incompleteBeta1(a, b, x)
}

func incompleteBeta1(a, b, x float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(a*math.Log(x)+b*math.Log1p(-x)+lab-la-lb) / a
	const tiny = 1e-300
	safe := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/safe(1-(a+b)*x/(a+1))
	f := d
	for m := 1.0; m < 10_000; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / safe(1+even*d)
		c = safe(1 + even/c)
		f *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / safe(1+odd*d)
		c = safe(1 + odd/c)
		step := d * c
		f *= step
		if math.Abs(step-1) < 1e-16 {
			break
		}
	}
	return front * f
}
