//! Computes the vector of a text from the states of its tokens.

use crate::models::Pooling;

/// The vector of unit length for a text whose tokens have these states; zeros if they cancel each other out.
pub(super) fn pool(states: &[Vec<f32>], pooling: Pooling) -> Vec<f32> {
    let Some((first, others)) = states.split_first() else { return Vec::new() };
    let mut vector = first.clone();
    for state in others {
        for (pooled, value) in vector.iter_mut().zip(state) {
            match pooling {
                // The sum has the direction of the mean, and the length is normalised below.
                Pooling::Mean => *pooled += value,
                Pooling::Max => *pooled = pooled.max(*value),
                Pooling::Cls => {}
            }
        }
    }
    normalized(vector)
}

fn normalized(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_pools_as_its_name_says() {
        let states = vec![vec![3.0, 0.0, -5.0], vec![1.0, 4.0, -1.0], vec![-1.0, 2.0, -3.0]];
        let direction = |vector: [f32; 3]| normalized(vector.to_vec());
        assert_eq!(pool(&states, Pooling::Mean), direction([3.0, 6.0, -9.0]));
        assert_eq!(pool(&states, Pooling::Cls), direction([3.0, 0.0, -5.0]));
        assert_eq!(pool(&states, Pooling::Max), direction([3.0, 4.0, -1.0]));
    }

    #[test]
    fn vectors_are_of_unit_length_or_zeros() {
        assert_eq!(pool(&[vec![3.0, 4.0]], Pooling::Cls), [0.6, 0.8]);
        assert_eq!(pool(&[vec![1.0, 2.0], vec![-1.0, -2.0]], Pooling::Mean), [0.0, 0.0]);
        assert!(pool(&[], Pooling::Max).is_empty());
    }
}
