//! Statements: variables, loops over lists, conditions, output. An expression used as a statement
//! is printed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bt_lang::Span;
use bt_lang::ast::{BinaryOp, Block, Expr, ExprKind, ForIter, If, Stmt, StmtKind, UnaryOp};

use crate::eval::{CompiledExpr, EvalError, Evaluator, Place, Value};

/// Receiver of the output of statements.
pub trait Output {
    /// Takes a value, with the expression that it is of.
    fn value(
        &mut self,
        evaluator: &Evaluator<'_>,
        value: &Value,
        expr: Span,
    ) -> Result<(), EvalError>;

    /// Takes the text of `printf()`, already escaped.
    fn text(&mut self, text: &str);
}

/// Limit on the statements of one run: a loop may have no end.
const MAX_STEPS: u64 = 1_000_000;

/// Runs statements up to the first error.
pub fn run(
    evaluator: &Evaluator<'_>,
    block: &Block,
    output: &mut dyn Output,
) -> Result<(), EvalError> {
    let mut run = Run {
        evaluator,
        output,
        steps: MAX_STEPS,
        compiled: RefCell::default(),
    };
    run.block(block).map(|_| ())
}

/// Effect of a statement on the loop around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
    Return,
}

struct Run<'r, 'a> {
    evaluator: &'r Evaluator<'a>,
    output: &'r mut dyn Output,
    steps: u64,
    /// Compiled expressions by their address: each is compiled once.
    compiled: RefCell<HashMap<*const Expr, Rc<CompiledExpr>>>,
}

impl Run<'_, '_> {
    /// Computes the value of an expression of the running block.
    fn eval(&self, expr: &Expr) -> Result<Value, EvalError> {
        let known = self
            .compiled
            .borrow()
            .get(&std::ptr::from_ref(expr))
            .map(Rc::clone);
        let compiled = if let Some(known) = known {
            known
        } else {
            let compiled = Rc::new(self.evaluator.compiled(expr)?);
            self.compiled
                .borrow_mut()
                .insert(std::ptr::from_ref(expr), Rc::clone(&compiled));
            compiled
        };
        self.evaluator.value_of(&compiled)
    }

    fn block(&mut self, block: &Block) -> Result<Flow, EvalError> {
        for stmt in &block.stmts {
            let flow = self.stmt(stmt)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        match &block.value {
            Some(value) => self.expression(value),
            None => Ok(Flow::Next),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow, EvalError> {
        self.steps = self.steps.checked_sub(1).ok_or_else(|| {
            EvalError::other(
                stmt.span,
                format!("more than {MAX_STEPS} statements were executed: is there a loop without an end?"),
            )
        })?;
        match &stmt.kind {
            StmtKind::Let { var, ty: _, value } => {
                if let Some(value) = value {
                    self.evaluator.bind(&var.text, self.eval(value)?);
                }
                Ok(Flow::Next)
            }
            StmtKind::Assign { target, op, value } => self.assign(target, *op, value),
            StmtKind::Expr(expr) => self.expression(expr),
            StmtKind::Discard(value) => self.eval(value).map(|_| Flow::Next),
            StmtKind::While { cond, body } => {
                while self.is_true(cond)? {
                    match self.step(body)? {
                        Flow::Break => break,
                        Flow::Return => return Ok(Flow::Return),
                        _ => {}
                    }
                }
                Ok(Flow::Next)
            }
            StmtKind::For { var, iter, body } => self.for_loop(&var.text, iter, body),
            StmtKind::Break => Ok(Flow::Break),
            StmtKind::Continue => Ok(Flow::Continue),
            StmtKind::Return(None) => Ok(Flow::Return),
            _ => Err(EvalError::other(
                stmt.span,
                "this statement is only for scripts of `dptrace run`",
            )),
        }
    }

    /// Runs a turn of a loop. It counts as a statement, since its body may have none.
    fn step(&mut self, body: &Block) -> Result<Flow, EvalError> {
        self.steps = self.steps.saturating_sub(1);
        self.block(body)
    }

    fn is_true(&self, cond: &Expr) -> Result<bool, EvalError> {
        let value = self.eval(cond)?;
        if self.steps == 0 {
            return Err(EvalError::other(
                cond.span,
                format!("this loop does not end within {MAX_STEPS} statements"),
            ));
        }
        self.evaluator.is_true(&value, cond.span)
    }

    fn assign(
        &mut self,
        target: &Expr,
        op: Option<BinaryOp>,
        value: &Expr,
    ) -> Result<Flow, EvalError> {
        let ExprKind::Var(name) = &target.kind else {
            let message =
                "there are no maps outside of probes: only variables (`$name`) can be set";
            return Err(EvalError::other(target.span, message));
        };
        let mut new = self.eval(value)?;
        if let Some(op) = op {
            new = self.evaluator.combine(
                op,
                &self.eval(target)?,
                &new,
                target.span.to(value.span),
            )?;
        }
        self.evaluator.bind(name, new);
        Ok(Flow::Next)
    }

    fn expression(&mut self, expr: &Expr) -> Result<Flow, EvalError> {
        match &expr.kind {
            ExprKind::If(chain) => self.condition(chain),
            ExprKind::Block(block) => self.block(block),
            ExprKind::Call { func, args } if func.text == "print" && args.len() == 1 => {
                self.print(&args[0])
            }
            ExprKind::Call { func, args } if func.text == "printf" => self.printf(args, expr.span),
            ExprKind::Unary {
                op: op @ (UnaryOp::PreInc | UnaryOp::PostInc | UnaryOp::PreDec | UnaryOp::PostDec),
                operand,
            } => {
                let ExprKind::Var(name) = &operand.kind else {
                    return Err(EvalError::other(
                        operand.span,
                        "only variables (`$name`) can be changed",
                    ));
                };
                let step = if matches!(op, UnaryOp::PreInc | UnaryOp::PostInc) {
                    BinaryOp::Add
                } else {
                    BinaryOp::Sub
                };
                let old = self.eval(operand)?;
                let new =
                    self.evaluator
                        .combine(step, &old, &self.evaluator.literal(1), expr.span)?;
                self.evaluator.bind(name, new);
                Ok(Flow::Next)
            }
            _ => self.print(expr),
        }
    }

    fn print(&mut self, expr: &Expr) -> Result<Flow, EvalError> {
        let value = self.eval(expr)?;
        if value != Value::Nothing {
            self.output.value(self.evaluator, &value, expr.span)?;
        }
        Ok(Flow::Next)
    }

    fn condition(&mut self, chain: &If) -> Result<Flow, EvalError> {
        for (cond, block) in &chain.arms {
            let value = self.eval(cond)?;
            if self.evaluator.is_true(&value, cond.span)? {
                return self.block(block);
            }
        }
        chain
            .otherwise
            .as_ref()
            .map_or(Ok(Flow::Next), |block| self.block(block))
    }

    fn for_loop(&mut self, var: &str, iter: &ForIter, body: &Block) -> Result<Flow, EvalError> {
        match iter {
            ForIter::Range { start, end } => {
                let bound = |expr: &Expr| {
                    let number = self.eval(expr)?.number();
                    number.ok_or_else(|| EvalError::other(expr.span, "expected a number"))
                };
                let (mut at, end_at) = (bound(start)?, bound(end)?);
                while at < end_at {
                    if self.steps == 0 {
                        let message =
                            format!("this loop does not end within {MAX_STEPS} statements");
                        return Err(EvalError::other(start.span, message));
                    }
                    self.evaluator.bind(var, self.evaluator.signed(at));
                    match self.step(body)? {
                        Flow::Break => break,
                        Flow::Return => return Ok(Flow::Return),
                        _ => at += 1,
                    }
                }
                Ok(Flow::Next)
            }
            ForIter::List(list) => self.for_each(var, list, body),
            ForIter::Map(map) => Err(EvalError::other(
                map.span,
                "there are no maps outside of probes",
            )),
        }
    }

    /// Runs `for ($q : list(...))`, or a loop over the elements of an array.
    fn for_each(&mut self, var: &str, list: &Expr, body: &Block) -> Result<Flow, EvalError> {
        let value = self.eval(list)?;
        let (start, element, count) = match value {
            Value::Tuple(parts) => {
                for part in parts {
                    self.evaluator.bind(var, part);
                    match self.step(body)? {
                        Flow::Break => break,
                        Flow::Return => return Ok(Flow::Return),
                        _ => {}
                    }
                }
                return Ok(Flow::Next);
            }
            other => self.evaluator.elements(&other, list.span)?,
        };
        let Some(count) = count else {
            return Err(EvalError::other(
                list.span,
                "this has no known end: for ($i : 0..N) counts",
            ));
        };
        let size = self
            .evaluator
            .types
            .size(element)
            .map_err(|error| EvalError::new(list.span, error))?;
        for index in 0..count.min(self.evaluator.max_elements() as u64) {
            let place = Place::new(start.wrapping_add(index.wrapping_mul(size)), element);
            self.evaluator
                .bind(var, self.evaluator.load(place, list.span)?);
            match self.step(body)? {
                Flow::Break => break,
                Flow::Return => return Ok(Flow::Return),
                _ => {}
            }
        }
        Ok(Flow::Next)
    }

    /// Runs `printf("%d %s\n", ...)`, with the directives of scripts that have a meaning outside of
    /// probes.
    fn printf(&mut self, args: &[Expr], span: Span) -> Result<Flow, EvalError> {
        let Some((
            Expr {
                kind: ExprKind::Str(format),
                span: place,
            },
            args,
        )) = args.split_first()
        else {
            return Err(EvalError::other(
                span,
                "printf is used as printf(\"FORMAT\", VALUES)",
            ));
        };
        let values: Result<Vec<(Value, Span)>, _> = args
            .iter()
            .map(|arg| self.eval(arg).map(|value| (value, arg.span)))
            .collect();
        let text = crate::format::format(self.evaluator, format, &values?, *place)?;
        self.output.text(&text);
        Ok(Flow::Next)
    }
}
