//! Settings: their names, and the values that the environment, a file or a store URL gives them.
//!
//! A backend declares its settings as data ([`Setting`]). The facade finds their values and passes them as
//! [`Settings`], so a backend reads neither the environment nor a configuration file.

mod setting;
mod values;
mod variables;

pub use setting::{Setting, SettingKind};
pub use values::{Entry, SettingOrigin, Settings, has_password};
pub use variables::Variables;
