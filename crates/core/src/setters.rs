//! Setters of options.

/// Methods that set one field each: `with_limit(limit: usize);`.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($field:ident: $type:ty);)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $field: $type) -> Self {
                self.$field = $field;
                self
            }
        )*
    };
}

/// Methods that set one optional field each: `with_role(role: Role);` accepts a `Role` or an `Option<Role>`.
macro_rules! optional_setters {
    ($($(#[$doc:meta])* $name:ident($field:ident: $type:ty);)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $field: impl Into<Option<$type>>) -> Self {
                self.$field = $field.into();
                self
            }
        )*
    };
}
