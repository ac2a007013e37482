//! Exact amounts of money.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use crate::{Error, ErrorField, Result};

/// The number of decimal places.
const PLACES: u32 = 24;

/// One, in units of the last decimal place.
const ONE: i128 = 10_i128.pow(PLACES);

/// An exact amount of money: a decimal with 24 decimal places, up to 10¹⁴.
///
/// Logs have costs as strings (`"0.4724725"`) or as numbers. A number is converted to its shortest decimal form, which
/// is the number in the log unless it had more than 15 digits. Sums are exact, so only what is shown of a sum is rounded.
/// Further decimal places are rounded.
///
/// ```
/// use amplifier_session_core::model::Cost;
///
/// let cost: Cost = "0.1".parse().unwrap();
/// assert_eq!((cost + "0.20".parse().unwrap()).to_string(), "0.3");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost(#[cfg_attr(feature = "schema", schemars(with = "f64"))] i128);

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// A cost in a log, as a number or as a decimal in a string. `None` if it is neither, negative, or too large. A
    /// currency sign or a comma is not guessed at: the currency of sums is not known, and `1,500` is 1500 or 1.5.
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        let cost = match value {
            Value::Number(number) => number.to_string().parse().ok(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        cost.filter(|cost| *cost >= Self::ZERO)
    }

    /// A JSON number if that has the same value, or else a string.
    #[must_use]
    pub fn to_json(self) -> Value {
        let text = self.to_string();
        let number = text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<f64>().map(Value::from));
        number.ok().filter(|number| Self::from_json(number) == Some(self)).unwrap_or(Value::String(text))
    }

    /// The amount in hundredths, rounded half up.
    #[must_use]
    pub fn cents(self) -> i128 {
        const CENT: i128 = ONE / 100;
        self.0.saturating_add(CENT / 2).div_euclid(CENT)
    }
}

/// Sums saturate, because the numbers in logs are not validated.
impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::ZERO, |sum, cost| sum + cost)
    }
}

impl FromStr for Cost {
    type Err = Error;

    /// Reads a decimal number: `0.25`, `-1`, `.5`, `1e-7`, with white space around it.
    fn from_str(text: &str) -> Result<Self> {
        read(text.trim()).ok_or_else(|| Error::validation(ErrorField::Cost, "must be a decimal number"))
    }
}

fn read(text: &str) -> Option<Cost> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The digits as one number, and how many of them are after the decimal point.
    let mut units: i128 = 0;
    let mut places = i64::try_from(fraction.len()).ok()? - i64::from(exponent);
    let mut is_full = false;
    for digit in whole.bytes().chain(fraction.bytes()) {
        if !digit.is_ascii_digit() {
            return None;
        }
        let more = units.checked_mul(10).and_then(|units| units.checked_add(i128::from(digit - b'0')));
        match more.filter(|_| !is_full) {
            Some(more) => units = more,
            // This digit and the following ones are cut off.
            None => (is_full, places) = (true, places - 1),
        }
    }
    let shift = i64::from(PLACES) - places;
    let power = |exponent: i64| 10_i128.checked_pow(u32::try_from(exponent).ok()?);
    let units = match shift {
        _ if units == 0 => 0,
        0.. => units.checked_mul(power(shift)?)?,
        _ => power(-shift).map_or(0, |divisor| units / divisor + i128::from(units % divisor >= divisor / 2)),
    };
    Some(Cost(sign * units))
}

impl fmt::Display for Cost {
    /// Without an exponent, and without zeros at the end: `0.4724725`, `12`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = self.0.unsigned_abs();
        let one = ONE.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let fraction = format!("{:024}", units % one);
        let (whole, fraction) = (units / one, fraction.trim_end_matches('0'));
        let point = if fraction.is_empty() { "" } else { "." };
        f.pad(&format!("{sign}{whole}{point}{fraction}"))
    }
}

impl Serialize for Cost {
    /// As a JSON number with all its digits.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?;
        number.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Cost {
    /// Reads a JSON number, as exactly as [`Cost::from_json`] does, or a decimal in a string.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn cost(text: &str) -> Cost {
        text.parse().unwrap()
    }

    #[test]
    fn a_cost_is_read_as_it_was_written() {
        for text in ["0", "12", "0.4724725", "0.0000001", "-3"] {
            let json = serde_json::to_string(&cost(text)).unwrap();
            assert_eq!(serde_json::from_str::<Cost>(&json).unwrap(), cost(text), "{json}");
        }
        assert!(serde_json::from_str::<Cost>(r#""$1.50""#).is_err());
    }

    #[test]
    fn strings_and_numbers_are_read_exactly() {
        for (given, expected) in [
            (json!("0.4724725"), "0.4724725"),
            (json!("0.083880"), "0.08388"),
            (json!(0.4724725), "0.4724725"),
            (json!(3), "3"),
            (json!(1e-7), "0.0000001"),
            (json!("1E2"), "100"),
            (json!(" 1.50 "), "1.5"),
            (json!(".5"), "0.5"),
            (json!("-0"), "0"),
            (json!("0.0000000000000000019"), "0.0000000000000000019"),
            (json!("0.1234567890123456789012345678901234567890123"), "0.123456789012345678901235"),
            (json!("0.0000000000000000000000005"), "0.000000000000000000000001"),
            (json!("0.0000000000000000000000004"), "0"),
            (json!("1e-400"), "0"),
        ] {
            assert_eq!(
                Cost::from_json(&given).map(|cost| cost.to_string()).as_deref(),
                Some(expected),
                "{given}"
            );
        }
        for bad in [
            json!(""),
            json!("."),
            json!("free"),
            json!("1.2.3"),
            json!("1e"),
            json!(null),
            json!([1]),
            json!(1e300),
            json!("NaN"),
            json!(-2.25),
            json!("-2.25"),
            json!("$1.50"),
            json!("1.50 USD"),
            json!("€1"),
            json!("1,50"),
            json!("1,500.00"),
            json!(true),
            json!({"usd": 1}),
        ] {
            assert_eq!(Cost::from_json(&bad), None, "{bad}");
        }
    }

    #[test]
    fn sums_are_exact() {
        let reported =
            ["0.4724725", "0.083880", "0.09002375", "0.091580", "0.09428625", "0.110830", "0.1279425"];
        assert_eq!(reported.into_iter().map(cost).sum::<Cost>().to_string(), "1.071015");
        let tenths: Cost = std::iter::repeat_n(cost("0.1"), 10).sum();
        assert_eq!(
            (tenths, tenths.cents(), cost("0.005").cents(), cost("0.0049").cents()),
            (cost("1"), 100, 1, 0)
        );
        // Each of these alone has more than 18 decimal places.
        let small: Cost = std::iter::repeat_n(cost("0.0049999999999999999"), 3).sum();
        assert_eq!((small.to_string().as_str(), small.cents()), ("0.0149999999999999997", 1));
    }

    #[test]
    fn json_has_all_digits() {
        let long = cost("123456789.123456789123456789");
        assert_eq!(serde_json::to_string(&long).unwrap(), "123456789.123456789123456789");
        assert_eq!((cost("0.25").to_json(), cost("4").to_json()), (json!(0.25), json!(4)));
        assert_eq!(long.to_json(), json!("123456789.123456789123456789"));
    }

    proptest! {
        #[test]
        fn written_costs_can_be_parsed(units in any::<i64>(), more in any::<u32>()) {
            let cost = Cost(i128::from(units) * i128::from(more));
            prop_assert_eq!(cost.to_string().parse::<Cost>().unwrap(), cost);
            prop_assert_eq!(Cost::from_json(&cost.to_json()), Some(cost).filter(|cost| *cost >= Cost::ZERO));
        }

        #[test]
        fn any_text_is_a_cost_or_an_error(text in "\\PC{0,20}|[-+0-9.eE$ ]{0,40}") {
            let _ = text.parse::<Cost>();
        }
    }
}
