//! The program as its users meet it: a process with a home, arguments, output and an exit code.

#[cfg(test)]
mod contract;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod output;
#[cfg(test)]
mod support;
