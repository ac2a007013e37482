//! Macros for setters and for the names of enum values.

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

/// The values of an enum with their names, as they are stored and shown.
macro_rules! names {
    ($type:ident { $($variant:ident: $name:literal),* $(,)? }) => {
        impl $type {
            /// All values, in the order of their declaration.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name as it is stored.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
